/** Members as lanes: one for each client and host, so that somebody who dies and returns stays in one line. */
import { html } from "./lib.js";
import { clock, printable, shortened, span, who, words } from "./text.js";

export const LANE = 24;
/** Lanes that are shown until somebody wants all. */
export const LANES_MAX = 12;
const BAR = 6, BEAT = 12;
const byName = new Intl.Collator("en", { numeric: true }).compare;

/** Whether a member went although it should not have. @param {any} life */
export const isLost = (life) => life.left_at_ms >= 0 && /timeout/.test(life.end_cause);

/**
 * What names the lane of a life: of a member that was gone before its host was known, the one host of its client.
 * @param {any[]} members
 * @returns {(life: any) => string}
 */
function labelsOf(members) {
  const client = (/** @type {any} */ life) => who({ ...life, client_host: "" });
  /** @type {Map<string, Set<string>>} */
  const known = new Map();
  for (const life of members.filter((one) => one.client_host)) {
    known.set(client(life), (known.get(client(life)) ?? new Set()).add(who(life)));
  }
  return (life) => {
    const labels = [...(known.get(client(life)) ?? [])];
    return !life.client_host && labels.length === 1 ? labels[0] : who(life);
  };
}

/**
 * The lives of members, in lanes: lost ones first, then by name. Lives that overlap get lanes of their own.
 * @param {any[]} members
 * @returns {{label: string, lives: any[], losses: number}[]}
 */
export function lanesOf(members) {
  /** @type {Map<string, any[][]>} */
  const named = new Map();
  const labels = labelsOf(members);
  for (const life of [...members].sort((one, other) => one.joined_at_ms - other.joined_at_ms)) {
    const label = labels(life), lanes = named.get(label) ?? [];
    const free = lanes.find((lane) => {
      const last = lane[lane.length - 1];
      return last.left_at_ms >= 0 && last.left_at_ms <= life.joined_at_ms;
    });
    if (free) free.push(life);
    else lanes.push([life]);
    named.set(label, lanes);
  }
  const found = [...named].flatMap(([label, lanes]) => lanes.map((lives) => ({ label, lives, losses: lives.filter(isLost).length })));
  return found.sort((one, other) => other.losses - one.losses || byName(one.label, other.label));
}

/**
 * @param {{lane: any, y: number, plot: any, x: (ms: number) => number, now: number, chars: number, utc: boolean}} props
 */
export function Lane({ lane, y, plot, x, now, chars, utc }) {
  const middle = y + LANE / 2;
  const labelY = plot.left > 0 ? middle + 4 : y + 2;
  return html`<g class="lane" role="img" aria-label=${laneWords(lane, utc)}>
    <line class="rule" x1=${plot.left} x2=${plot.left + plot.width} y1=${middle} y2=${middle} />
    <text class=${lane.losses ? "lane-label is-lost" : "lane-label"} x=${plot.left > 0 ? plot.left - 10 : 0} y=${labelY} text-anchor=${plot.left > 0 ? "end" : "start"}>
      <title>${lane.label}</title>${shortened(lane.label, chars)}
    </text>
    ${lane.lives.map((/** @type {any} */ life) => html`<${Life} life=${life} middle=${middle} plot=${plot} x=${x} now=${now} utc=${utc} />`)}
  </g>`;
}

/** @param {any} props */
function Life({ life, middle, plot, x, now, utc }) {
  const from = life.joined_at_ms < 0 ? plot.from : life.joined_at_ms;
  const to = life.left_at_ms < 0 ? Math.min(now, plot.to) : life.left_at_ms;
  if (to < plot.from || from > plot.to) return null;
  const last = life.heartbeats.length ? life.heartbeats[life.heartbeats.length - 1][1] : -1;
  const deadline = last >= 0 && life.session_timeout_ms > 0 ? last + life.session_timeout_ms : -1;
  const runsOut = deadline >= 0 && last < to - 1_000 && x(Math.min(deadline, plot.to)) > x(last);
  const joined = life.joined_at_ms >= plot.from, left = life.left_at_ms >= 0 && life.left_at_ms <= plot.to;
  const isPoll = /poll/.test(life.end_cause) && life.rebalance_timeout_ms > 0;
  return html`<g>
    <title>${lifeWords(life, utc)}</title>
    <rect class=${life.heartbeats_known ? "life" : "life is-unheard"} x=${x(from)} y=${middle - BAR / 2} width=${Math.max(1, x(to) - x(from))} height=${BAR} />
    ${life.heartbeats.map((/** @type {[number, number]} */ [a, b]) => b >= plot.from && a <= plot.to && html`<rect class="beat" x=${x(a)} y=${middle - BEAT / 2} width=${Math.max(1.5, x(b) - x(a))} height=${BEAT} rx="2" />`)}
    ${runsOut && html`<rect class="runs-out" x=${x(last)} y=${middle - BEAT / 2} width=${x(deadline) - x(last)} height=${BEAT} />`}
    ${runsOut && deadline <= plot.to && html`<path class="deadline" d=${`M${x(deadline)} ${middle - 9}v18`} />`}
    ${isPoll && html`<path class="poll" d=${`M${x(life.left_at_ms - life.rebalance_timeout_ms)} ${middle + 9}H${x(life.left_at_ms)}`} />`}
    ${joined && html`<path class="joined" d=${`M${x(from)} ${middle - 9}v18`} />`}
    ${left && (isLost(life) ? html`<path class="lost" d=${cross(x(to), middle)} />` : html`<circle class="left" cx=${x(to)} cy=${middle} r="4" />`)}
  </g>`;
}

/** @param {number} x @param {number} y */
const cross = (x, y) => `M${x - 5} ${y - 5}l10 10M${x - 5} ${y + 5}l10 -10`;

/** @param {any} life @param {boolean} utc */
function lifeWords(life, utc) {
  const began = life.joined_at_ms < 0 ? "was there before" : `joined ${clock(life.joined_at_ms, utc)}`;
  const ended = life.left_at_ms < 0 ? "still there" : `${life.end_cause ? words(life.end_cause) : "gone"} ${clock(life.left_at_ms, utc)}`;
  const timeouts = [
    life.session_timeout_ms > 0 && `session timeout ${span(life.session_timeout_ms)}`,
    life.rebalance_timeout_ms > 0 && `poll interval ${span(life.rebalance_timeout_ms)}`,
    !life.heartbeats_known && "heartbeats unknown",
  ].filter(Boolean);
  return `${printable(life.member_id)}: ${began}, ${ended}. ${timeouts.join(", ")}`;
}

/** @param {any} lane @param {boolean} utc */
function laneWords(lane, utc) {
  return `${lane.label}. ${lane.lives.slice(-3).map((/** @type {any} */ one) => lifeWords(one, utc)).join(". ")}`;
}
