/** In place of ../api.js in a file of its own: the same answers, out of the file. Nobody is asked. */

/** What stands in the file: streaming/serving/one_file/captured.py. @type {any} */
export const captured = JSON.parse(document.getElementById("captured")?.textContent ?? '{"groups":[]}');

/** There is no server that an address could lead to. @returns {string} */
export const address = () => "";

/** @param {string} cluster @param {string} group @param {string} [what] @param {Record<string, string>} [query] */
export const groupPath = (cluster, group, what = "", query = {}) => `group${what}?${new URLSearchParams({ cluster, group, ...query })}`;

/** What behind the file's name chooses a group. @param {string} cluster @param {string} group */
export const groupHash = (cluster, group) => `#${encodeURIComponent(cluster)}/${encodeURIComponent(group)}`;

/** This file, with a group chosen. @param {string} cluster @param {string} group @param {Record<string, string>} [query] */
export function groupAddress(cluster, group, query = {}) {
  const given = new URLSearchParams(query).toString();
  return `${location.href.split(/[?#]/)[0]}${given && `?${given}`}${groupHash(cluster, group)}`;
}

/** The end of what was captured: time stands still here. @returns {number} */
export const now = () => captured.until_ms;

/** The rules of saved pictures. */
export const pictureRules = async () => document.getElementById("style-picture")?.textContent ?? "";

export const isAborted = () => false;

/** Nothing can be changed here. @returns {Promise<any>} */
export const remove = () => Promise.reject(new Error("this is a file, not a server"));

/** @param {string} path @returns {Promise<any>} */
export async function get(path) {
  const [place, query] = path.split("?"), given = new URLSearchParams(query);
  const kept = captured.groups.find((/** @type {any} */ one) => one.cluster === given.get("cluster") && one.group === given.get("group"));
  if (!kept) throw new Error("this group was not captured");
  if (place === "api/v1/alerts") return kept.alerts;
  if (place === "group/explain") return kept.story;
  if (place === "group/history") return cut(kept.history, Number(given.get("from")), Number(given.get("to")));
  return kept.detail;
}

/**
 * What of a history touches a window, as the server answers it; what lies before the capture is a gap.
 * @param {any} history @param {number} from @param {number} to
 */
export function cut(history, from, to) {
  const first = history.lag.findLastIndex((/** @type {any} */ one) => one.at_ms <= from);
  return {
    ...history,
    lag: history.lag.slice(Math.max(0, first)).filter((/** @type {any} */ one) => one.at_ms <= to),
    gaps: [[0, history.from_ms], ...history.gaps],
    rebalances: history.rebalances.filter((/** @type {any} */ one) => one.started_at_ms <= to && (one.ended_at_ms < 0 || one.ended_at_ms >= from)),
  };
}
