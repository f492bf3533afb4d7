/** What fires in a line for each group, so that every culprit stands on the first screen; the cards below tell the rest. */
import { culprits, Severity, Subject } from "./alerts.js";
import { html } from "./lib.js";
import { ago, counted, printable } from "./text.js";

/** Groups that get a line: as many as fit on a phone's first screen, and a few more. */
const GROUPS_MAX = 8, NAMES_MAX = 2;

/**
 * Alerts by group, groups in the order of their first alerts; those that are silenced left out.
 * @param {any} list the API's list of alerts
 * @returns {any[][]}
 */
export function byGroup(list) {
  /** @type {Map<string, any[]>} */
  const groups = new Map();
  for (const one of list.alerts) {
    if (one.id in (list.silenced_by ?? {})) continue;
    const key = `${one.cluster}\0${one.group}`, known = groups.get(key);
    if (known) known.push(one);
    else groups.set(key, [one]);
  }
  return [...groups.values()];
}

/** @param {{list: any, at: number}} props */
export function Glance({ list, at }) {
  const groups = byGroup(list);
  if (list.alerts.length < 2 || groups.length === 0) return null;
  return html`<div class="glance">
    <ol aria-label="What fires, at a glance">${groups.slice(0, GROUPS_MAX).map((alerts) => html`<${Line} key=${alerts[0].id} alerts=${alerts} at=${at} />`)}</ol>
    ${groups.length > GROUPS_MAX && html`<p class="dim">and ${counted(groups.length - GROUPS_MAX, "more group")} below</p>`}
  </div>`;
}

/** @param {{alerts: any[], at: number}} props the alerts of one group */
function Line({ alerts, at }) {
  const names = new Map(alerts.flatMap((one) => culprits(one, false)));
  const shown = [...names].slice(0, NAMES_MAX), left = names.size - shown.length;
  return html`<li>
    <${Severity} severity=${alerts[0].severity} />
    <span class="subject"><${Subject} alert=${alerts[0]} /></span>
    <span class="who">${shown.length > 0
      ? shown.map(([name, remark]) => html`<span title=${name}><bdi class="name">${name}</bdi>${remark && html` <span class="dim">(${remark})</span>`}</span>`)
      : html`<span class="dim">${printable(alerts[0].summary)}</span>`}${left > 0 && html`<span class="dim">and ${left} more</span>`}</span>
    <span class="dim kinds">${alerts.map((one) => printable(one.name)).join(", ")}</span>
    <span class="dim since">${ago(at - Math.min(...alerts.map((one) => one.starts_at_ms)))}</span>
  </li>`;
}
