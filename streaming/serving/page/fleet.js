/** The first view: what fires, all groups, and how well each cluster is heard. */
import { Alerts } from "./alerts.js";
import { asRequest, chosenInAddress, Filters, ROWS, writeToAddress } from "./filters.js";
import { Glance } from "./glance.js";
import { useAnswer, useNow } from "./hooks.js";
import { html, useEffect, useState } from "./lib.js";
import { Rows } from "./rows.js";
import { Sources } from "./sources.js";
import { counted, number, printable } from "./text.js";

const ALERTS_MAX = 100;
const DEBOUNCE_MS = 20;

/** @param {any} shared what every view gets: utc, news, told, isLost, me, silence */
export function Fleet(shared) {
  const [chosen, set] = useState(chosenInAddress());
  const at = useNow(1_000);
  const groups = useAnswer(asRequest(chosen), { delayMs: DEBOUNCE_MS, told: shared.told });
  const alerts = useAnswer(`api/v1/alerts?limit=${ALERTS_MAX}`);
  const clusters = useAnswer("api/v1/clusters");
  const sources = useAnswer("api/v1/sources");
  const choose = (/** @type {any} */ change) => {
    const next = { ...chosen, ...change };
    writeToAddress(next);
    set(next);
  };
  useEffect(() => {
    document.title = alerts.answer?.total ? `(${alerts.answer.total}) groupwatch` : "groupwatch";
  }, [alerts.answer?.total]);
  useEffect(() => {
    if (shared.news.count === 0) return;
    for (const one of wanted(shared.news.kind, { groups, alerts, clusters, sources })) one.again();
  }, [shared.news.count]);
  const names = (clusters.answer?.clusters ?? []).map((/** @type {any} */ one) => one.cluster);
  const reload = () => {
    alerts.again();
    groups.again();
  };
  return html`
    <div class="first">
      <${Headline} alerts=${alerts.answer} groups=${groups.answer} />
      ${alerts.answer && html`<${Glance} list=${alerts.answer} at=${at} />`}
    </div>
    ${alerts.error && !shared.isLost && html`<p class="error" role="alert">What fires: ${printable(alerts.error.message)}</p>`}
    ${alerts.answer && html`<section aria-label="What fires"><${Alerts} list=${alerts.answer} at=${at} shared=${shared} reload=${reload} /></section>`}
    <section aria-labelledby="groups-title">
      <div class="section-head">
        <h2 id="groups-title">Groups</h2>
        <span class="dim" role="status">${groups.answer && place(groups.answer)}</span>
      </div>
      <${Filters} chosen=${chosen} choose=${choose} clusters=${names} alerts=${firing(alerts.answer)} />
      ${groups.error && !shared.isLost && html`<p class="error" role="alert">${printable(groups.error.message)}</p>`}
      ${groups.answer && html`<${Rows} groups=${groups.answer.groups} at=${at} chosen=${chosen} choose=${choose} manyClusters=${names.length > 1} />`}
      ${groups.answer?.total === 0 && html`<p class="empty">No group matches. ${chosen.q && "Part of the name is enough; upper and lower case are the same."}</p>`}
      ${groups.answer && html`<${Pages} answer=${groups.answer} choose=${choose} />`}
    </section>
    <${Sources} clusters=${clusters.answer} sources=${sources.answer} at=${at} utc=${shared.utc} />
  `;
}

/** The names of what fires, for the filter. @param {any} alerts */
const firing = (alerts) => [...new Set((alerts?.alerts ?? []).map((/** @type {any} */ one) => String(one.name)))].sort();

/** The answers that an event makes old. @param {string} kind @param {any} answers */
function wanted(kind, { groups, alerts, clusters, sources }) {
  if (kind === "groups") return [groups];
  if (kind === "alerts") return [alerts, groups];
  // Events tell of states, not of lag.
  if (kind === "beat") return [groups, sources];
  return [groups, alerts, clusters, sources];
}

/** @param {{alerts: any, groups: any}} props */
function Headline({ alerts, groups }) {
  if (!alerts) return html`<h1 class="headline">Fleet</h1>`;
  const loud = alerts.alerts.filter((/** @type {any} */ one) => !(alerts.silenced_by ?? {})[one.id]);
  const upset = new Set(loud.map((/** @type {any} */ one) => `${one.cluster}\0${one.group}`)).size;
  if (alerts.total === 0) return html`<h1 class="headline is-calm">Nothing fires${groups ? html` <span class="dim">on ${counted(groups.total, "group")}</span>` : ""}</h1>`;
  if (loud.length === 0) return html`<h1 class="headline is-calm">All that fires is silenced <span class="dim">${counted(alerts.total, "alert")}</span></h1>`;
  const counts = ["critical", "warning", "info"].map((severity) => [severity, loud.filter((/** @type {any} */ one) => one.severity === severity).length]);
  const isPart = alerts.alerts.length < alerts.total && loud.length === alerts.alerts.length;
  return html`<h1 class="headline">
    ${isPart && "At least "}${counted(upset, "group needs", "groups need")} somebody
    <span class="dim">${counts.filter(([, count]) => count).map(([severity, count]) => `${number(Number(count))} ${severity}`).join(", ")}</span>
  </h1>`;
}

/** @param {any} answer */
function place(answer) {
  if (answer.total === 0) return "none";
  if (answer.groups.length === 0) return `none here, of ${number(answer.total)}`;
  const last = Math.min(answer.offset + answer.groups.length, answer.total);
  return `${number(answer.offset + 1)}–${number(last)} of ${number(answer.total)}`;
}

/** @param {{answer: any, choose: (change: any) => void}} props */
function Pages({ answer, choose }) {
  if (answer.total <= ROWS && answer.offset === 0) return null;
  const go = (/** @type {number} */ offset) => () => {
    choose({ offset: String(offset) });
    document.getElementById("groups-title")?.scrollIntoView();
  };
  const last = Math.floor((answer.total - 1) / ROWS) * ROWS;
  return html`<nav class="pages" aria-label="Pages of groups">
    <button type="button" disabled=${answer.offset === 0} onClick=${go(0)}>First</button>
    <button type="button" disabled=${answer.offset === 0} onClick=${go(Math.max(0, answer.offset - ROWS))}>Previous</button>
    <span class="dim">${place(answer)}</span>
    <button type="button" disabled=${answer.offset + ROWS >= answer.total} onClick=${go(answer.offset + ROWS)}>Next</button>
    <button type="button" disabled=${answer.offset + ROWS >= answer.total} onClick=${go(last)}>Last</button>
  </nav>`;
}
