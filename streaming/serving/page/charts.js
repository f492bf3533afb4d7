/** Lag and commit rate on the timeline's axis; what was not watched is hatched, what is unknown is not drawn. */
import { html } from "./lib.js";
import { roundUp } from "./scale.js";
import { compact } from "./text.js";

/**
 * The paths of a curve whose points hold until the next one.
 * @param {any[]} points @param {string} field @param {any} plot @param {(ms: number) => number} x
 * @param {(value: number) => number} y @param {[number, number][]} gaps @param {number} end
 */
export function curve(points, field, plot, x, y, gaps, end) {
  /** @type {[number, number, number][]} */
  const runs = [];
  points.forEach((point, i) => {
    const value = point[field];
    if (value === null || value === undefined) return;
    const next = i + 1 < points.length ? points[i + 1].at_ms : end;
    const gap = gaps.find(([from]) => from >= point.at_ms && from < next);
    const until = gap ? gap[0] : next;
    if (until >= plot.from && point.at_ms <= plot.to) runs.push([point.at_ms, until, value]);
  });
  let line = "", area = "", before = -1;
  const close = () => (area += area && before >= 0 ? `V${y(0)}Z` : "");
  runs.forEach(([from, until, value], i) => {
    if (from !== before) {
      close();
      line += `M${x(from).toFixed(1)} ${y(value).toFixed(1)}`;
      area += `M${x(from).toFixed(1)} ${y(0)}V${y(value).toFixed(1)}`;
    } else {
      line += `L${x(from).toFixed(1)} ${y(value).toFixed(1)}`;
      area += `L${x(from).toFixed(1)} ${y(value).toFixed(1)}`;
    }
    // A point a step: a line between them reads better than stairs; the last one holds.
    if (until === end || runs[i + 1]?.[0] !== until) {
      line += `H${Math.max(x(from) + 1, x(until)).toFixed(1)}`;
      area += `H${Math.max(x(from) + 1, x(until)).toFixed(1)}`;
    }
    before = until;
  });
  close();
  return { line, area };
}

/**
 * @param {{title: string, unit: string, field: string, history: any, plot: any, x: (ms: number) => number, y: number, height: number, now: number, className: string}} props
 */
export function Chart({ title, unit, field, history, plot, x, y, height, now, className }) {
  const known = history.lag.map((/** @type {any} */ one) => one[field]).filter((/** @type {any} */ one) => one !== null && one !== undefined);
  const top = roundUp(Math.max(0, ...known));
  const place = (/** @type {number} */ value) => y + height - (value / top) * (height - 8);
  const { line, area } = curve(history.lag, field, plot, x, place, history.gaps, Math.min(now, plot.to));
  const labelX = plot.left > 0 ? plot.left - 10 : 0;
  const anchor = plot.left > 0 ? "end" : "start";
  const most = known.length ? `${title}: up to ${compact(Math.max(...known))}${unit}` : `${title}: not known in this window`;
  return html`<g class=${`chart ${className}`} role="img" aria-label=${most}>
    <line class="rule" x1=${plot.left} x2=${plot.left + plot.width} y1=${y + height} y2=${y + height} />
    <line class="rule is-light" x1=${plot.left} x2=${plot.left + plot.width} y1=${place(top)} y2=${place(top)} />
    <text class="chart-label" x=${labelX} y=${plot.left > 0 ? y + height / 2 + 4 : y - 2} text-anchor=${anchor}>${title}</text>
    ${known.length > 0 && html`<text class="axis-label" x=${plot.left + plot.width - 4} y=${place(top) - 3} text-anchor="end">${compact(top)}${unit}</text>`}
    ${known.length === 0 && html`<text class="axis-label" x=${plot.left + plot.width / 2} y=${y + height / 2} text-anchor="middle">not known in this window</text>`}
    <path class="area" d=${area} /><path class="curve" d=${line} />
  </g>`;
}

/** @param {{history: any, plot: any, x: (ms: number) => number, y: number, height: number}} props */
export function Gaps({ history, plot, x, y, height }) {
  return html`<g class="gaps">${history.gaps.filter((/** @type {any} */ [from, to]) => to >= plot.from && from <= plot.to).map((/** @type {[number, number]} */ [from, to]) => html`<g>
    <title>Nobody watched in this time: lag and members are not known.</title>
    <rect class="gap" x=${x(from)} y=${y} width=${Math.max(2, x(to) - x(from))} height=${height} />
    ${x(to) - x(from) > 90 && html`<text class="axis-label" x=${(x(from) + x(to)) / 2} y=${y + 14} text-anchor="middle">not watched</text>`}
  </g>`)}</g>`;
}
