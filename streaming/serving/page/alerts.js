/** What fires: who, since when, what it costs, what to do. */
import { groupAddress, remove } from "./api.js";
import { html, useState } from "./lib.js";
import { ago, counted, moment, printable, span, who, zone } from "./text.js";

const SHAPES = /** @type {Record<string, string>} */ ({ critical: "▲", warning: "◆", info: "●" });
const FIRST = 5;
const NEVER_MS = 4e13;

/** @param {{severity: string}} props */
export function Severity({ severity }) {
  return html`<span class=${`severity is-${severity}`}><i aria-hidden="true">${SHAPES[severity] ?? "●"}</i> ${severity}</span>`;
}

/**
 * Alerts, those that are silenced last; a few at first.
 * @param {{list: any, at: number, shared: any, reload: () => void, isOnGroup?: boolean}} props
 */
export function Alerts({ list, at, shared, reload, isOnGroup = false }) {
  const [all, showAll] = useState(false);
  const silenced = list.silenced_by ?? {};
  const sorted = [...list.alerts].sort((one, other) => Number(one.id in silenced) - Number(other.id in silenced));
  const shown = all ? sorted : sorted.slice(0, FIRST);
  const rest = Math.max(list.total, sorted.length) - shown.length;
  return html`<div class="alerts">
    ${shown.map((alert) => html`<${AlertCard} key=${alert.id} alert=${alert} silenced=${silenced[alert.id]} at=${at} shared=${shared} reload=${reload} isOnGroup=${isOnGroup} />`)}
    ${rest > 0 && sorted.length > shown.length && html`<button type="button" class="more" onClick=${() => showAll(true)}>Show ${counted(rest, "more alert")}</button>`}
    ${all && list.total > sorted.length && html`<p class="dim">The ${sorted.length} loudest of ${list.total} are shown.</p>`}
  </div>`;
}

/** @param {{alert: any, silenced: any, at: number, shared: any, reload: () => void, isOnGroup: boolean}} props */
function AlertCard({ alert, silenced, at, shared, reload, isOnGroup }) {
  const rows = [
    ["Who", culprits(alert).map(([name, remark]) => html`<div><bdi class="name">${name}</bdi>${remark && html` <span class="dim">(${remark})</span>`}</div>`), alert.culprits.length > 0],
    ["Why", printable(alert.cause), alert.cause],
    ["Cost", printable(alert.cost), alert.cost],
    ["Do", html`${printable(alert.advice)} <${Runbook} url=${alert.runbook} />`, alert.advice || alert.runbook],
  ];
  return html`<article class=${`alert is-${alert.severity}${silenced ? " is-silenced" : ""}`} aria-label=${`${alert.name}, ${alert.severity}`}>
    <header>
      <${Severity} severity=${alert.severity} />
      <h3>${isOnGroup ? printable(alert.name) : html`<${Subject} alert=${alert} /> <span class="kind">${printable(alert.name)}</span>`}</h3>
      <span class="since" title=${`since ${moment(alert.starts_at_ms, shared.utc)} ${zone(shared.utc)}`}>${lasted(alert, at, shared.utc)}</span>
    </header>
    <p class="summary">${printable(alert.summary)}</p>
    <dl>${rows.filter(([, , given]) => given).map(([name, text]) => html`<dt>${name}</dt><dd>${text}</dd>`)}</dl>
    <footer>
      ${silenced ? html`<${Silenced} silenced=${silenced} shared=${shared} reload=${reload} />` : html`<${Buttons} alert=${alert} shared=${shared} reload=${reload} />`}
      ${!isOnGroup && alert.group && html`<a class="button" href=${groupAddress(alert.cluster, alert.group)}>See what happened</a>`}
    </footer>
  </article>`;
}

/**
 * Each client once, with a remark: a client that comes back is another member each time.
 * @param {any} alert @param {boolean} [counts] the remark says how many members a client has been
 * @returns {[string, string][]}
 */
export function culprits(alert, counts = true) {
  /** @type {Map<string, {name: string, basis: string, members: number}>} */
  const found = new Map();
  for (const one of alert.culprits) {
    const name = who(one);
    const known = found.get(`${one.basis} ${name}`) ?? { name, basis: one.basis, members: 0 };
    found.set(`${one.basis} ${name}`, { ...known, members: known.members + 1 });
  }
  return [...found.values()].map(({ name, basis, members }) => {
    const remarks = [counts && members > 1 ? counted(members, "member") : "", basis === "observed" ? "" : printable(basis)];
    return [name, remarks.filter(Boolean).join(", ")];
  });
}

/** @param {any} alert @param {number} at @param {boolean} utc */
function lasted(alert, at, utc) {
  if (alert.ends_at_ms === null || alert.ends_at_ms === undefined) return `for ${ago(at - alert.starts_at_ms)}`;
  return `over: ${span(alert.ends_at_ms - alert.starts_at_ms)} until ${moment(alert.ends_at_ms, utc, at)} ${zone(utc)}`;
}

/** @param {{alert: any}} props */
export function Subject({ alert }) {
  if (!alert.group) return html`<bdi class="name">${printable(alert.cluster)}</bdi> <span class="dim">whole cluster</span>`;
  return html`<a class="name" href=${groupAddress(alert.cluster, alert.group)}><bdi>${printable(alert.group)}</bdi></a> <span class="dim"><bdi>${printable(alert.cluster)}</bdi></span>`;
}

/** @param {{url: string}} props */
export function Runbook({ url }) {
  if (!/^https?:\/\//.test(url)) return url ? html`<span class="dim">${printable(url)}</span>` : null;
  return html`<a href=${url} rel="noreferrer">Runbook</a>`;
}

/** @param {{alert: any, shared: any, reload: () => void}} props */
function Buttons({ alert, shared, reload }) {
  const { me, silence } = shared;
  if (!me) return null;
  const hint = me.may_change ? undefined : me.why_not;
  const open = (/** @type {string} */ kind) => () => silence({ alert, kind, done: reload });
  return html`
    <button type="button" disabled=${!me.may_change} title=${hint} onClick=${open("acknowledge")}>Acknowledge</button>
    <button type="button" disabled=${!me.may_change} title=${hint} onClick=${open("silence")}>Silence …</button>
    ${hint && html`<span class="dim hint">${printable(hint)}</span>`}
  `;
}

/** @param {{silenced: any, shared: any, reload: () => void}} props */
function Silenced({ silenced, shared, reload }) {
  const [error, fail] = useState("");
  const until = silenced.until_ms > NEVER_MS ? "until it is resolved" : `until ${moment(silenced.until_ms, shared.utc)} ${zone(shared.utc)}`;
  const end = () => remove(`api/v1/silences/${encodeURIComponent(silenced.id)}`).then(reload, (refused) => fail(refused.message));
  return html`<span class="silenced">
      Silenced ${until}${silenced.author && html` by <bdi>${printable(silenced.author)}</bdi>`}${silenced.comment && html`: <bdi>${printable(silenced.comment)}</bdi>`}
    </span>
    ${silenced.id && shared.me?.may_change && html`<button type="button" onClick=${end}>End silence</button>`}
    ${error && html`<span class="error" role="alert">${printable(error)}</span>`}`;
}
