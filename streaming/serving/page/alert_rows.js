/** Alerts over a window of time: a row for each name, which stands beside its row, so that no name runs into another. */
import { html } from "./lib.js";
import { counted, moment, printable, shortened } from "./text.js";

export const ROW = 20;
/** Rows that are drawn; the loudest stay. */
export const ROWS_MAX = 8;
const BAR = 13, LEAST = 3, SAID_MAX = 5;
const RANK = /** @type {Record<string, number>} */ ({ critical: 0, warning: 1, info: 2 });
const rank = (/** @type {any} */ alert) => RANK[alert.severity] ?? 3;

/**
 * Alerts by name, the loudest names first, then those that began first.
 * @param {any[]} alerts
 * @returns {{name: string, severity: string, alerts: any[]}[]}
 */
export function alertRowsOf(alerts) {
  /** @type {Map<string, any[]>} */
  const named = new Map();
  for (const one of [...alerts].sort((one, other) => one.starts_at_ms - other.starts_at_ms)) {
    const list = named.get(one.name);
    if (list) list.push(one);
    else named.set(one.name, [one]);
  }
  const loudest = (/** @type {any[]} */ list) => list.reduce((found, one) => (rank(one) < rank(found) ? one : found));
  const rows = [...named].map(([name, list]) => ({ name, severity: loudest(list).severity, alerts: list }));
  return rows.sort((one, other) => rank(one) - rank(other) || one.alerts[0].starts_at_ms - other.alerts[0].starts_at_ms);
}

/**
 * Alerts of one row without those that would be drawn over one another: weeks may have thousands.
 * @param {any[]} alerts in their order @param {(ms: number) => number} x @param {number} now
 */
function thinned(alerts, x, now) {
  let drawn = -Infinity;
  return alerts.filter((alert) => {
    const end = Math.max(x(alert.starts_at_ms) + LEAST, x(alert.ends_at_ms ?? now));
    if (end - drawn < 1) return false;
    drawn = end;
    return true;
  });
}

/** @param {{row: any, y: number, plot: any, x: (ms: number) => number, now: number, chars: number, utc: boolean}} props */
export function AlertRow({ row, y, plot, x, now, chars, utc }) {
  const isBeside = plot.left > 0, top = isBeside ? y : y + 13;
  return html`<g class="alert-row" role="img" aria-label=${rowWords(row, utc)}>
    <line class="rule" x1=${plot.left} x2=${plot.left + plot.width} y1=${top + BAR / 2} y2=${top + BAR / 2} />
    <text class=${`alert-label is-${printable(row.severity)}`} x=${isBeside ? plot.left - 10 : 0} y=${isBeside ? y + 11 : y + 9} text-anchor=${isBeside ? "end" : "start"}>
      <title>${printable(row.name)}</title>${shortened(row.name, chars)}
    </text>
    ${thinned(row.alerts, x, now).map((alert) => html`<g class=${`alert-bar is-${printable(alert.severity)}`}>
      <title>${alertWords(alert, utc)}: ${printable(alert.summary)}</title>
      <rect x=${x(alert.starts_at_ms)} y=${top} width=${Math.max(LEAST, x(alert.ends_at_ms ?? now) - x(alert.starts_at_ms))} height=${BAR} rx="2" />
    </g>`)}
  </g>`;
}

/** @param {any} alert @param {boolean} utc */
function alertWords(alert, utc) {
  const end = alert.ends_at_ms ? `to ${moment(alert.ends_at_ms, utc, alert.starts_at_ms)}` : "still firing";
  return `${printable(alert.name)}, ${printable(alert.severity)}, from ${moment(alert.starts_at_ms, utc)} ${end}`;
}

/** @param {any} row @param {boolean} utc */
function rowWords({ name, alerts }, utc) {
  const last = alerts.slice(-SAID_MAX).map((/** @type {any} */ one) => alertWords(one, utc)).join(". ");
  return `${alerts.length > SAID_MAX ? `${printable(name)} ${counted(alerts.length, "time")}. The last: ` : ""}${last}`;
}
