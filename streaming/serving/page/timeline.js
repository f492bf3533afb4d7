/** The picture of a group's window: alerts, states, rebalances, members, lag and commits on one axis of time. */
import { AlertRow, alertRowsOf, ROW, ROWS_MAX } from "./alert_rows.js";
import { Chart, Gaps } from "./charts.js";
import { LANE, Lane, LANES_MAX, lanesOf } from "./lanes.js";
import { html } from "./lib.js";
import { scaleOf, ticks } from "./scale.js";
import { counted, moment, printable, shortened, span, who, words } from "./text.js";

const GUTTER = 190, AXIS = 24, BAND = 26, MARKS = 26, LAG = 96, COMMITS = 56, SPACE = 14;
const NEAR = 18, WIDE = 640;

/**
 * Rebalances whose marks would touch, as one mark each.
 * @param {any[]} rebalances oldest first @param {(ms: number) => number} x
 * @returns {{at: number, list: any[]}[]} `at` in pixels
 */
export function marksOf(rebalances, x) {
  /** @type {{at: number, list: any[]}[]} */
  const marks = [];
  for (const one of rebalances) {
    const at = x(one.started_at_ms), last = marks[marks.length - 1];
    if (last && at - last.at < NEAR) last.list.push(one);
    else marks.push({ at, list: [one] });
  }
  return marks;
}

/**
 * States without those that would be drawn over one another: weeks of a storm are thousands.
 * @param {any[]} states @param {(ms: number) => number} x @param {number} from
 */
export function thinned(states, x, from) {
  let drawn = -Infinity;
  return states.filter((one) => {
    const begin = x(Math.max(from, one.from_ms)), isWide = one.to_ms < 0 || x(one.to_ms) - begin >= 1;
    if (!isWide && begin - drawn < 1) return false;
    if (!isWide) drawn = begin;
    return true;
  });
}

/** Whether a member was lost. @param {any} rebalance */
const isLoss = ({ cause }) => /timeout/.test(cause.kind);

/** The rebalance that stands for a mark: its last loss of a member, or else its last. @param {{list: any[]}} mark */
export function toldOf({ list }) {
  return list.filter(isLoss).pop() ?? list[list.length - 1];
}

/** What a rebalance's mark says. @param {{list: any[]}} mark @param {boolean} utc */
export function markWords({ list }, utc) {
  const told = toldOf({ list });
  const one = `Rebalance at ${moment(told.started_at_ms, utc, told.started_at_ms)}: ${words(told.cause.kind)}${culprit(told)}`;
  if (list.length > 1) return `${counted(list.length, "rebalance")} close together. ${isLoss(told) ? "The last loss" : "The last"}: ${one}`;
  return `${one}, ${told.ended_at_ms < 0 ? "still running" : span(told.ended_at_ms - told.started_at_ms)}`;
}

/** @param {any} rebalance */
const culprit = ({ cause }) => (cause.member_id || cause.client_id ? ` ${who(cause)}` : "");

/**
 * @param {{history: any, from: number, to: number, width: number, now: number, utc: boolean, allLanes?: boolean, title?: string,
 *   chosen?: number, focused?: number, choose?: (mark: any) => void, point?: (mark: any|null) => void}} props
 *   `chosen` is the start of the chosen rebalance.
 */
export function Timeline({ history, from, to, width, now, utc, allLanes = false, title = "", chosen = -1, focused = -1, choose, point }) {
  const isWide = width >= WIDE;
  const plot = { from, to, left: isWide ? GUTTER : 0, width: width - (isWide ? GUTTER : 0) - 1 };
  const { x, inside } = scaleOf(plot);
  const alerts = alertRowsOf(history.alerts.filter((/** @type {any} */ one) => one.starts_at_ms <= to && (one.ends_at_ms ?? now) >= from));
  const rows = alerts.slice(0, ROWS_MAX), rowHeight = isWide ? ROW : ROW + 12;
  const lanes = lanesOf(history.members.filter((/** @type {any} */ one) => one.joined_at_ms <= to && (one.left_at_ms < 0 || one.left_at_ms >= from)));
  const shown = allLanes ? lanes : lanes.slice(0, LANES_MAX);
  const laneHeight = isWide ? LANE : LANE + 12;
  const head = title ? 46 : 0;
  const yAlerts = head + AXIS + 4, yBand = yAlerts + rows.length * rowHeight + (alerts.length > rows.length ? 18 : 0) + (rows.length ? 6 : 0), yMarks = yBand + BAND;
  const yLanes = yMarks + MARKS + (isWide ? 4 : 10), yMore = yLanes + shown.length * laneHeight;
  const yLag = yMore + (lanes.length > shown.length ? 20 : 0) + SPACE + (isWide ? 0 : 10);
  const yCommits = yLag + LAG + SPACE + (isWide ? 0 : 10), bottom = yCommits + COMMITS;
  const marks = marksOf(history.rebalances.filter((/** @type {any} */ one) => inside(one.started_at_ms)), x);
  const subtitle = `${moment(from, utc)} – ${moment(to, utc, from)} ${utc ? "UTC" : "local time"}`;
  const chars = isWide ? Math.floor((GUTTER - 16) / 7) : Math.floor(width / 7.5);
  return html`<svg class="timeline" viewBox=${`0 0 ${width} ${bottom + 4}`} width=${width} height=${bottom + 4} role="group" aria-label=${`Timeline from ${moment(from, utc)} to ${moment(to, utc)}`}>
    <defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="6" /></pattern></defs>
    ${title && html`<text class="title" x="0" y="20"><title>${title}</title>${shortened(title, Math.floor(width / 11))}</text><text class="subtitle" x="0" y="38" textLength=${subtitle.length * 6.7 > width ? width : undefined} lengthAdjust="spacingAndGlyphs">${subtitle}</text>`}
    ${ticks(from, to, plot.width, utc).map(({ at, label }) => html`<g><line class="grid" x1=${x(at)} x2=${x(at)} y1=${head + AXIS} y2=${bottom} /><text class="axis-label" x=${clamp(x(at), plot, label)} y=${head + 15} text-anchor="middle">${label}</text></g>`)}
    <${Gaps} history=${history} plot=${plot} x=${x} y=${yLanes} height=${bottom - yLanes} />
    ${rows.map((row, i) => html`<${AlertRow} key=${row.name} row=${row} y=${yAlerts + i * rowHeight} plot=${plot} x=${x} now=${now} chars=${isWide ? Math.floor((GUTTER - 16) / 7.2) : Math.floor(width / 7.5)} utc=${utc} />`)}
    ${alerts.length > rows.length && html`<text class="axis-label" x=${plot.left} y=${yAlerts + rows.length * rowHeight + 11}>and ${counted(alerts.length - rows.length, "more kind")} of alerts</text>`}
    <g role="img" aria-label="States">${thinned(history.states, x, plot.from).map((/** @type {any} */ one) => html`<${StateBand} one=${one} y=${yBand} x=${x} plot=${plot} now=${now} />`)}</g>
    ${isWide && html`<text class="chart-label" x=${plot.left - 10} y=${yBand + 17} text-anchor="end">State</text>`}
    ${isWide && html`<text class="chart-label" x=${plot.left - 10} y=${yMarks + 18} text-anchor="end">Rebalances</text>`}
    ${marks.map((mark, i) => html`<${Mark} key=${mark.list[0].started_at_ms} mark=${mark} y=${yMarks} bottom=${bottom} utc=${utc} isChosen=${mark.list.some((one) => one.started_at_ms === chosen)} isFocused=${i === (focused < 0 ? marks.length - 1 : Math.min(focused, marks.length - 1))} choose=${choose} point=${point} />`)}
    ${shown.map((lane, i) => html`<${Lane} lane=${lane} y=${yLanes + i * laneHeight + (isWide ? 0 : 10)} plot=${plot} x=${x} now=${now} chars=${chars} utc=${utc} />`)}
    ${lanes.length > shown.length && html`<text class="axis-label" x=${plot.left} y=${yMore + 15}>and ${counted(lanes.length - shown.length, "more member")}</text>`}
    <${Chart} title="Lag" unit="" field="records" className="is-lag" history=${history} plot=${plot} x=${x} y=${yLag} height=${LAG} now=${now} />
    <${Chart} title="Commits" unit="/s" field="commits_per_s" className="is-commits" history=${history} plot=${plot} x=${x} y=${yCommits} height=${COMMITS} now=${now} />
    ${inside(now) && html`<line class="now" x1=${x(now)} x2=${x(now)} y1=${head + AXIS - 2} y2=${bottom} />`}
  </svg>`;
}

/** @param {number} at @param {any} plot @param {string} label */
const clamp = (at, plot, label) => Math.max(plot.left + label.length * 3.4, Math.min(plot.left + plot.width - label.length * 3.4, at));

/** @param {any} props */
function StateBand({ one, y, x, plot, now }) {
  const from = one.from_ms < 0 ? plot.from : one.from_ms, to = one.to_ms < 0 ? Math.min(now, plot.to) : one.to_ms;
  if (to < plot.from || from > plot.to) return null;
  const width = Math.max(1.5, x(to) - x(from));
  const state = printable(one.state), generation = one.generation >= 0 ? `generation ${one.generation}` : "";
  const texts = [generation && `${state}, ${generation}`, state, one.generation >= 0 ? String(one.generation) : ""];
  const text = texts.find((it) => it && it.length * 6.8 + 10 < width);
  return html`<g class=${`band is-${state}`}>
    <title>${state} for ${span(to - from)}${generation && `, ${generation}`}${one.basis === "observed" ? "" : ` (${printable(one.basis)})`}</title>
    <rect x=${x(from)} y=${y} width=${width} height=${BAND} />
    ${text && html`<text x=${x(from) + 6} y=${y + 17}>${text}</text>`}
  </g>`;
}

/** @param {any} props */
function Mark({ mark, y, bottom, utc, isChosen, isFocused, choose, point }) {
  const { at, list } = mark, many = list.length > 1;
  const show = () => point?.({ ...mark, y: y + MARKS + 6 });
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose?.(mark);
  };
  return html`<g class=${`mark${isChosen ? " is-chosen" : ""}${list.some(isLoss) ? " is-loss" : ""}`} role="button" tabindex=${isFocused ? 0 : -1} data-at=${list[0].started_at_ms} aria-pressed=${isChosen ? "true" : "false"} aria-label=${markWords(mark, utc)}
    onClick=${() => choose?.(mark)} onKeyDown=${press} onFocus=${show} onBlur=${() => point?.(null)} onPointerEnter=${show} onPointerLeave=${() => point?.(null)}>
    <line class="mark-line" x1=${at} x2=${at} y1=${y - BAND} y2=${bottom} />
    <rect class="mark-touch" x=${at - 11} y=${y} width="22" height=${MARKS} />
    ${many ? html`<rect class="mark-sign" x=${at - 9} y=${y + 5} width="18" height="16" rx="8" /><text class=${list.length > 99 ? "mark-count is-long" : "mark-count"} x=${at} y=${y + 17} text-anchor="middle">${list.length > 99 ? "99+" : list.length}</text>`
      : html`<path class="mark-sign" d=${`M${at} ${y + 4}l8 8l-8 8l-8 -8z`} />`}
  </g>`;
}
