/** The window of time that is shown, as the address has it: a length that ends now, or a fixed beginning and end. */
const MINUTE = 60_000, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
export const LEAST = 5 * MINUTE, MOST = 7 * DAY;

export const LENGTHS = [
  { name: "5m", label: "5 min", ms: 5 * MINUTE }, { name: "15m", label: "15 min", ms: 15 * MINUTE }, { name: "1h", label: "1 h", ms: HOUR },
  { name: "6h", label: "6 h", ms: 6 * HOUR }, { name: "24h", label: "24 h", ms: DAY }, { name: "7d", label: "7 d", ms: 7 * DAY },
];
const USUAL = LENGTHS[2];

/** @typedef {{from: number, to: number, length: number}} Window `length` > 0: it ends now, and from and to are 0 */

/** @param {number} from @param {number} to @returns {Window} */
export function fixed(from, to) {
  const span = Math.min(MOST, Math.max(LEAST, to - from)), middle = (from + to) / 2;
  return { from: Math.round(middle - span / 2), to: Math.round(middle + span / 2), length: 0 };
}

/** @param {number} length @returns {Window} */
export const untilNow = (length) => ({ from: 0, to: 0, length });

/** The window in the address, or what is shown without one. @param {Window} [usual] @returns {Window} */
export function windowInAddress(usual) {
  const given = new URLSearchParams(location.search);
  const from = Number(given.get("from")), to = Number(given.get("to"));
  if (from > 0 && to > from) return fixed(from, to);
  const known = LENGTHS.find((one) => one.name === given.get("window"));
  return known || !usual ? untilNow((known ?? USUAL).ms) : usual;
}

/** What of a query names a window. @param {Window} window @returns {Record<string, string>} */
export function query(window) {
  if (!window.length) return { from: String(window.from), to: String(window.to) };
  const known = LENGTHS.find((one) => one.ms === window.length);
  return known && known !== USUAL ? { window: known.name } : {};
}

/** The beginning and end of a window now. @param {Window} window @param {number} now */
export const bounds = (window, now) => (window.length ? { from: now - window.length, to: now } : { from: window.from, to: window.to });

/** @param {{from: number, to: number}} at @param {number} part of the window's length; below 0 is earlier @param {number} now */
export function panned({ from, to }, part, now) {
  const by = (to - from) * part;
  return to + by >= now ? fixed(now - (to - from), now) : fixed(from + by, to + by);
}

/** @param {{from: number, to: number}} at @param {number} factor below 1 shows less @param {number} [middle] stays where it is */
export function zoomed({ from, to }, factor, middle = (from + to) / 2) {
  const length = Math.min(MOST, Math.max(LEAST, (to - from) * factor)), part = (middle - from) / (to - from);
  return fixed(middle - length * part, middle + length * (1 - part));
}
