/** Words, numbers and times as the page shows them. Nothing here touches the document. */

const UNSEEN = /[\u0000-\u001f\u007f-\u00a0\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\ufeff\ufff0-\ufffc\ufffe\uffff]/g;
const LONELY = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/**
 * A stranger's text without what cannot be seen or turns what is read.
 * @param {unknown} text
 * @returns {string}
 */
export function printable(text) {
  const escape = (/** @type {string} */ one) => "\\u" + one.charCodeAt(0).toString(16).padStart(4, "0");
  return String(text ?? "").replace(UNSEEN, escape).replace(LONELY, escape);
}

/** Characters that are as wide as two Latin ones, and those that stand on the one before. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const MARK = /\p{M}/u;

/** How many Latin characters a character is wide. @param {string} one */
const cells = (one) => (MARK.test(one) ? 0 : WIDE.test(one) ? 2 : 1);

/** How many of the characters fit into so many cells. @param {string[]} shown @param {number} most */
function fitting(shown, most) {
  let left = most, count = 0;
  while (count < shown.length && cells(shown[count]) <= left) left -= cells(shown[count++]);
  return count;
}

/**
 * A name cut in its middle, so that its beginning and its end stay.
 * @param {string} text
 * @param {number} most Latin characters; others may be twice as wide
 */
export function shortened(text, most) {
  const shown = [...printable(text)];
  if (fitting(shown, most) === shown.length) return shown.join("");
  const head = Math.ceil((most - 1) * 0.6), back = [...shown].reverse();
  const tail = fitting(back, most - 1 - head);
  return shown.slice(0, fitting(shown, head)).join("") + "…" + (tail ? shown.slice(-tail).join("") : "");
}

/**
 * A span in words of at most two units: "4.2 s", "3 min 20 s", "5 h".
 * @param {number} ms
 */
export function span(ms) {
  if (!Number.isFinite(ms) || ms < 0) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(Math.round(ms / 100) / 10).toString()} s`;
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return two(Math.floor(s / 60), "min", s % 60, "s");
  if (s < 86_400) return two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
  return two(Math.floor(s / 86_400), "d", Math.floor((s % 86_400) / 3600), "h");
}

/** @param {number} big @param {string} unit @param {number} small @param {string} lesser */
function two(big, unit, small, lesser) {
  return small && big < 10 ? `${big} ${unit} ${small} ${lesser}` : `${big} ${unit}`;
}

/**
 * A span in one unit, for narrow columns: "3 min".
 * @param {number} ms
 */
export function ago(ms) {
  if (!Number.isFinite(ms)) return "";
  if (ms < 0) ms = 0;
  const s = Math.floor(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}

/**
 * A count with thin spaces between thousands.
 * @param {number|null|undefined} count
 */
export function number(count) {
  if (count === null || count === undefined || !Number.isFinite(count)) return "";
  const text = Math.abs(count) < 10 && !Number.isInteger(count) ? count.toFixed(1) : String(Math.round(count));
  return text.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/**
 * A count in at most four characters: "12.4k".
 * @param {number} count
 */
export function compact(count) {
  for (const [size, unit] of /** @type {[number, string][]} */ ([[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])) {
    if (Math.abs(count) >= size) return `${(count / size).toPrecision(3).replace(/\.?0+$/, "")}${unit}`;
  }
  return number(count);
}

/** @param {number} count @param {string} one @param {string} [many] */
export function counted(count, one, many) {
  return `${number(count)} ${count === 1 ? one : many ?? one + "s"}`;
}

const pad = (/** @type {number} */ n, width = 2) => String(n).padStart(width, "0");

/**
 * The parts of a moment, in UTC or the browser's zone.
 * @param {number} ms @param {boolean} utc
 */
export function parts(ms, utc) {
  const at = new Date(ms);
  return utc
    ? { year: at.getUTCFullYear(), month: at.getUTCMonth() + 1, day: at.getUTCDate(), hour: at.getUTCHours(), minute: at.getUTCMinutes(), second: at.getUTCSeconds() }
    : { year: at.getFullYear(), month: at.getMonth() + 1, day: at.getDate(), hour: at.getHours(), minute: at.getMinutes(), second: at.getSeconds() };
}

/** @param {number} ms @param {boolean} utc */
export function clock(ms, utc) {
  const p = parts(ms, utc);
  return `${pad(p.hour)}:${pad(p.minute)}:${pad(p.second)}`;
}

/** @param {number} ms @param {boolean} utc */
export function day(ms, utc) {
  const p = parts(ms, utc);
  return `${p.year}-${pad(p.month)}-${pad(p.day)}`;
}

/**
 * A moment as people write it; the day is left out if it is the day of `near`.
 * @param {number} ms @param {boolean} utc @param {number} [near]
 */
export function moment(ms, utc, near) {
  const whole = near === undefined || day(ms, utc) !== day(near, utc);
  return whole ? `${day(ms, utc)} ${clock(ms, utc)}` : clock(ms, utc);
}

/** @param {boolean} utc */
export function zone(utc) {
  if (utc) return "UTC";
  const minutes = -new Date().getTimezoneOffset();
  return `UTC${minutes < 0 ? "−" : "+"}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`;
}

/**
 * Who it is, for people: the client's own name first, and where it runs.
 * @param {{member_id?: string, client_id?: string, client_host?: string, instance_id?: string|null}} one
 */
export function who(one) {
  const name = one.instance_id || one.client_id || one.member_id || "an unknown member";
  const host = (one.client_host ?? "").replace(/^\//, "");
  return printable(name) + (host ? ` on ${printable(host)}` : "");
}

/** "session_timeout" as people say it. @param {string} kind */
export const words = (kind) => printable(kind).replaceAll("_", " ");
