/** What is known of the chosen rebalance: cause, culprit, phases, cost, and who had which partitions. */
import { html } from "./lib.js";
import { clock, moment, number, printable, shortened, span, who, words, zone } from "./text.js";

const PARTITIONS_MAX = 12;

/** @param {{list: any[], chosen: any, history: any, utc: boolean, choose: (one: any) => void}} props */
export function Rebalance({ list, chosen, history, utc, choose }) {
  if (!chosen) {
    return html`<section class="panel is-unchosen" aria-labelledby="rebalance-title"><h2 id="rebalance-title">Rebalance</h2>
      <p class="dim">${history.rebalances.length ? "Choose a mark in the timeline, with the pointer or with Tab and the arrow keys." : "None in this window."}</p></section>`;
  }
  return html`<section class="panel" aria-labelledby="rebalance-title" aria-live="polite">
    <h2 id="rebalance-title">Rebalance <span class="dim">${moment(chosen.started_at_ms, utc)} ${zone(utc)}</span></h2>
    ${list.length > 1 && html`<div class="choices" role="group" aria-label="Rebalances close together">${list.map((one) => html`<button type="button" aria-pressed=${one === chosen ? "true" : "false"} onClick=${() => choose(one)}>${clock(one.started_at_ms, utc)}</button>`)}</div>`}
    <dl>
      <dt>Cause</dt><dd>${words(chosen.cause.kind)}${chosen.basis === "observed" ? "" : html` <span class="dim">(${printable(chosen.basis)})</span>`}${chosen.cause.detail && html`<div class="dim">${printable(chosen.cause.detail)}</div>`}</dd>
      ${(chosen.cause.member_id || chosen.cause.client_id) && html`<dt>Who</dt><dd><bdi class="name">${who(chosen.cause)}</bdi></dd>`}
      <dt>Took</dt><dd>${phases(chosen)}</dd>
      ${chosen.cost && html`<dt>Cost</dt><dd>${cost(chosen.cost)}</dd>`}
    </dl>
    ${chosen.words && html`<p class="words">${printable(chosen.words)}</p>`}
    <${Owners} history=${history} rebalance=${chosen} />
  </section>`;
}

/** @param {any} one */
function phases(one) {
  const end = one.ended_at_ms < 0 ? "still running" : `${span(one.ended_at_ms - one.started_at_ms)}, then ${printable(one.state)} at generation ${one.generation}`;
  if (one.joined_at_ms < 0 || one.ended_at_ms < 0) return end;
  return `${end} (join ${span(one.joined_at_ms - one.started_at_ms)}, assignment ${span(one.ended_at_ms - one.joined_at_ms)})`;
}

/** The figures in one line, as far as they are known; the words tell them whole. @param {any} cost */
export function cost(cost) {
  const known = (/** @type {any} */ figure) => figure !== null && figure !== undefined && figure >= 0;
  const told = [
    known(cost.partition_ms) && `${number(cost.partition_ms / 1000)} partition-seconds without an owner`,
    known(cost.moved) && `${number(cost.moved)} partitions moved${known(cost.least) ? ` (${number(cost.least)} had to)` : ""}`,
    known(cost.reread) && cost.reread > 0 && `${number(cost.reread)} records read again`,
  ].filter(Boolean);
  return told.join(", ") || "not known";
}

/**
 * Owners before and after: the last that are known until its start, and the first from its end on.
 * @param {any[]} owners @param {any} rebalance
 */
export function beforeAndAfter(owners, rebalance) {
  const before = [...owners].reverse().find((one) => one.at_ms <= rebalance.started_at_ms);
  const after = rebalance.ended_at_ms < 0 ? undefined : owners.find((one) => one.at_ms >= rebalance.ended_at_ms || one.generation === rebalance.generation);
  return { before, after };
}

/** Topic-partition -> member. @param {any} owned @returns {Map<string, string>} */
function byPartition(owned) {
  const found = new Map();
  for (const [member, topics] of Object.entries(owned?.assignment ?? {})) {
    for (const [topic, partitions] of Object.entries(/** @type {Record<string, number[]>} */ (topics))) for (const one of partitions) found.set(`${topic}-${one}`, member);
  }
  return found;
}

/** @param {{history: any, rebalance: any}} props */
function Owners({ history, rebalance }) {
  const { before, after } = beforeAndAfter(history.owners, rebalance);
  if (!before && !after) return html`<p class="dim">Who had which partitions is not known here.</p>`;
  const then = byPartition(before), now = byPartition(after);
  const name = (/** @type {string|undefined} */ id) => {
    if (!id) return "nobody";
    const known = history.members.find((/** @type {any} */ one) => one.member_id === id);
    return shortened(known?.instance_id || known?.client_id || id, 24);
  };
  const all = [...new Set([...then.keys(), ...now.keys()])].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const moved = before && after ? all.filter((one) => then.get(one) !== now.get(one)) : all;
  const unmoved = all.length - moved.length;
  const column = (/** @type {any} */ owned, /** @type {Map<string, string>} */ map, /** @type {string} */ one) => (owned ? html`<bdi class="name" title=${printable(map.get(one) ?? "")}>${name(map.get(one))}</bdi>` : html`<span class="dim">unknown</span>`);
  return html`<div class="owners">
    <h3>Partitions that changed hands</h3>
    ${moved.length === 0 ? html`<p class="dim">None of ${all.length}.</p>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Owners before and after"><table>
      <thead><tr><th scope="col">Partition</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
      <tbody>${moved.slice(0, PARTITIONS_MAX).map((one) => html`<tr><th scope="row"><bdi class="name">${shortened(one, 32)}</bdi></th><td>${column(before, then, one)}</td><td>${column(after, now, one)}</td></tr>`)}</tbody>
    </table></div>`}
    ${moved.length > PARTITIONS_MAX && html`<p class="dim">and ${moved.length - PARTITIONS_MAX} more</p>`}
    ${moved.length > 0 && unmoved > 0 && html`<p class="dim">${unmoved} stayed where they were.</p>`}
  </div>`;
}
