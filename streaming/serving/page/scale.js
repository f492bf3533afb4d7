/** Where a moment or a value lies in the picture, and which of them get a label. */
import { clock, day, parts } from "./text.js";

const SECOND = 1_000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [1, 2, 5, 10, 15, 30].map((n) => n * SECOND)
  .concat([1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), [1, 2, 3, 6, 12].map((n) => n * HOUR), [DAY, 2 * DAY]);

/**
 * A moment's x, cut to the plot.
 * @param {{from: number, to: number, left: number, width: number}} plot
 */
export function scaleOf({ from, to, left, width }) {
  const x = (/** @type {number} */ ms) => left + ((Math.min(to, Math.max(from, ms)) - from) / (to - from)) * width;
  return { x, inside: (/** @type {number} */ ms) => ms >= from && ms <= to };
}

/**
 * Moments for labels of the time axis, at least `apart` pixels from each other.
 * @param {number} from @param {number} to @param {number} width @param {boolean} utc @param {number} [apart]
 * @returns {{at: number, label: string}[]}
 */
export function ticks(from, to, width, utc, apart = 80) {
  const most = Math.max(2, Math.floor(width / apart));
  const step = STEPS.find((one) => (to - from) / one <= most) ?? 2 * DAY;
  const shift = utc ? 0 : -new Date(from).getTimezoneOffset() * MINUTE;
  const first = Math.ceil((from + shift) / step) * step - shift;
  const found = [];
  for (let at = first; at <= to; at += step) found.push({ at, label: label(at, step, utc) });
  return found;
}

/** @param {number} at @param {number} step @param {boolean} utc */
function label(at, step, utc) {
  const p = parts(at, utc);
  if (p.hour === 0 && p.minute === 0 && p.second === 0 && step >= MINUTE) return day(at, utc).slice(5);
  return step < MINUTE ? clock(at, utc) : clock(at, utc).slice(0, 5);
}

/** A round number that is not below `value`. @param {number} value */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((n) => n * size >= value) ?? 10) * size;
}
