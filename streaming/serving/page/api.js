/** Asks the server, and knows how its clock differs from the browser's. */

const ROOT = new URL("../../", import.meta.url);

/** The address of something below the server's root. @param {string} path */
export const address = (path) => new URL(path, ROOT).href;

/** The path of this view below the server's root, still encoded. */
export const here = () => location.pathname.slice(ROOT.pathname.length);

/** Browsers fold these in paths, however they are encoded: such names stand in the query. @param {string} name */
const isFolded = (name) => name === "." || name === "..";

/**
 * A path below `base` and its "s": groups/{cluster}/{group}, or group?cluster=…&group=… for names that a path cannot hold.
 * @param {string} base @param {string} cluster @param {string} group @param {string} what @param {Record<string, string>} query
 */
function named(base, cluster, group, what, query) {
  const inQuery = isFolded(cluster) || isFolded(group);
  const path = inQuery ? `${base}${what}` : `${base}s/${encodeURIComponent(cluster)}/${encodeURIComponent(group)}${what}`;
  const rest = new URLSearchParams(inQuery ? { cluster, group, ...query } : query).toString();
  return rest ? `${path}?${rest}` : path;
}

/** What is asked about a group. @param {string} cluster @param {string} group @param {string} [what] @param {Record<string, string>} [query] */
export const groupPath = (cluster, group, what = "", query = {}) => named("api/v1/group", cluster, group, what, query);

/** The page of a group. @param {string} cluster @param {string} group @param {Record<string, string>} [query] */
export const groupAddress = (cluster, group, query = {}) => address(named("group", cluster, group, "", query));

let offsetMs = 0;

/** The server's time now, as far as it is known. */
export const now = () => Date.now() + offsetMs;

/** Takes the server's word for what time it is. @param {number|undefined} atMs */
export function learnClock(atMs) {
  if (typeof atMs === "number" && atMs > 0) offsetMs = atMs - Date.now();
}

/** The server's clock less the browser's, in ms. */
export const clockOffset = () => offsetMs;

export class Refused extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string} path below the root
 * @param {RequestInit} [options]
 * @returns {Promise<any>}
 */
async function ask(path, options = {}) {
  const answer = await fetch(address(path), { cache: "no-store", ...options });
  const text = await answer.text();
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Refused(text.slice(0, 200) || `the server answered ${answer.status}`, answer.status);
  }
  // /ready answers 503 with a whole body while clusters are not ready.
  if (!answer.ok && body.error !== undefined) throw new Refused(String(body.error), answer.status);
  learnClock(body.at_ms);
  return body;
}

/** @param {string} path @param {AbortSignal} [signal] */
export const get = (path, signal) => ask(path, { signal });

/** @param {string} path @param {unknown} body */
export const post = (path, body) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** @param {string} path */
export const remove = (path) => ask(path, { method: "DELETE" });

/** The rules of saved pictures. */
export const pictureRules = async () => (await fetch(new URL("style/picture.css", import.meta.url))).text();

/** Whether an error only says that nobody waits for the answer any more. @param {unknown} error */
export const isAborted = (error) => error instanceof DOMException && error.name === "AbortError";
