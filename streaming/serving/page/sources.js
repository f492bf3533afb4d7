/** How well each cluster is heard: its mode, its brokers' logs, how late they are, and what is missing. */
import { html } from "./lib.js";
import { ago, counted, number, printable, words } from "./text.js";

const BROKERS_MAX = 12;
const LOGS = ["coordinator_log", "request_log"];
const MODES = /** @type {Record<string, string>} */ ({
  full: "topic, coordinator log and request log",
  quiet: "topic and coordinator log, no heartbeats",
  requests: "topic and request log, causes inferred",
  offsets: "topic alone: finished generations and commits",
  nothing: "nothing is heard",
});

/** @param {{clusters: any, sources: any}} props */
export function Sources({ clusters, sources }) {
  if (!clusters) return null;
  const told = new Map((sources?.clusters ?? []).map((/** @type {any} */ one) => [one.cluster, one]));
  return html`<section aria-labelledby="sources-title">
    <div class="section-head"><h2 id="sources-title">Clusters and what is heard of them</h2></div>
    <div class="clusters">${clusters.clusters.map((/** @type {any} */ one) => html`<${Cluster} key=${one.cluster} one=${one} heard=${told.get(one.cluster)} />`)}</div>
  </section>`;
}

/** @param {{one: any, heard: any}} props */
function Cluster({ one, heard }) {
  return html`<article class="cluster">
    <h3><bdi>${printable(one.cluster)}</bdi>${heard && html`<span class="dim">mode ${printable(heard.mode)}</span>${!heard.ready && html`<span class="warn">◆ not ready</span>`}`}</h3>
    <dl>
      ${heard && html`<dt>Reads</dt><dd>${MODES[heard.mode] ?? printable(heard.mode)}${heard.watermark_behind_s >= 30 ? html`, <span class="warn">◆ ${ago(heard.watermark_behind_s * 1000)} behind</span>` : ""}</dd>`}
      ${heard?.logs.length > 0 && html`<dt>Logs</dt><dd>${LOGS.map((log) => html`<${Log} name=${log} logs=${heard.logs.filter((/** @type {any} */ one) => one.log === log)} />`)}</dd>`}
      ${heard?.sources.length > 0 && html`<dt>Inputs</dt><dd>${heard.sources.map((/** @type {any} */ source) => html`<${Input} source=${source} />`)}</dd>`}
      <dt>Groups</dt><dd>${number(one.groups)}</dd>
      <dt>Agreement</dt><dd>${one.agreement === null ? "no answer of the brokers could be compared lately" : `${(one.agreement * 100).toFixed(1)} % of the brokers’ answers in 15 min`}</dd>
      ${one.divergences.length > 0 && html`<dt>Differences</dt><dd>${counted(one.divergences.length, "difference")} noted, the last: ${words(one.divergences[0].kind)}</dd>`}
      ${heard?.missing.length > 0 && html`<dt>Missing</dt><dd>${heard.missing.map((/** @type {string} */ text) => html`<div>${printable(text)}</div>`)}</dd>`}
      ${heard?.notices.length > 0 && html`<dt>Notices</dt><dd>${heard.notices.map((/** @type {string} */ text) => html`<div class="warn">◆ ${printable(text)}</div>`)}</dd>`}
    </dl>
  </article>`;
}

/** One log of all brokers: who is heard in a line, and each that is not. @param {{name: string, logs: any[]}} props */
function Log({ name, logs }) {
  const heard = logs.filter((one) => one.heard), silent = logs.filter((one) => !one.heard);
  const newest = Math.min(...heard.map((one) => one.late_s ?? Infinity));
  return html`${heard.length > 0 && html`<div>✓ ${words(name)} of ${brokers(heard)} <span class="dim">newest line ${ago(newest * 1000)} old</span></div>`}
    ${silent.length > 0 && html`<div><span class="warn">◆ ${words(name)} of ${brokers(silent)}</span> <span class="dim">${printable(silent[0].note)}</span></div>`}`;
}

/** @param {any[]} logs */
function brokers(logs) {
  const ids = logs.slice(0, BROKERS_MAX).map((one) => one.broker).join(", ");
  return `${logs.length === 1 ? "broker" : "brokers"} ${ids}${logs.length > BROKERS_MAX ? ` and ${logs.length - BROKERS_MAX} more` : ""}`;
}

/** @param {{source: any}} props */
function Input({ source }) {
  const reasons = Object.entries(source.undecodable_by_reason).map(([reason, count]) => `${number(Number(count))} ${words(reason)}`).join(", ");
  return html`<div>${words(source.source)} <span class="dim">${number(source.events)} seen${source.late_s === null ? "" : `, newest ${ago(source.late_s * 1000)} old`}</span>${source.undecodable > 0 && html` <span class="warn">◆ ${number(source.undecodable)} not understood</span> <span class="dim">(${reasons})</span>`}</div>`;
}
