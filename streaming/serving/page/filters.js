/** The fleet's filters, as the address has them, so that a link and the browser's back button bring them back. */
import { html } from "./lib.js";

export const STATES = ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "NotReady", "Empty", "Dead"];
export const TYPES = ["classic", "consumer", "share", "streams"];
export const ROWS = 50;
const DEFAULTS = { q: "", cluster: "", state: "", type: "", alert: "", sort: "trouble", order: "", offset: "0" };

/** @typedef {typeof DEFAULTS} Chosen */

/** @returns {Chosen} */
export function chosenInAddress() {
  const given = new URLSearchParams(location.search);
  const chosen = { ...DEFAULTS };
  for (const name of /** @type {(keyof Chosen)[]} */ (Object.keys(DEFAULTS))) chosen[name] = given.get(name) ?? DEFAULTS[name];
  return chosen;
}

/** Writes what differs from the defaults to the address, without a new entry of the history. @param {Chosen} chosen */
export function writeToAddress(chosen) {
  const query = differing(chosen).toString();
  history.replaceState(null, "", location.pathname + (query ? `?${query}` : ""));
}

/** @param {Chosen} chosen */
function differing(chosen) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(chosen)) {
    if (value !== DEFAULTS[/** @type {keyof Chosen} */ (name)]) query.set(name, value);
  }
  return query;
}

const FALLING = new Set(["lag", "members", "rebalances"]);

/** The order in which a column is sorted first. @param {string} sort */
export const firstOrder = (sort) => (FALLING.has(sort) ? "desc" : "asc");

/** The request for what is chosen. @param {Chosen} chosen */
export function asRequest(chosen) {
  const query = differing(chosen);
  query.set("spark", "1h");
  query.set("sort", chosen.sort);
  query.set("order", chosen.order || firstOrder(chosen.sort));
  query.set("limit", String(ROWS));
  return `api/v1/groups?${query}`;
}

/** @param {{chosen: Chosen, choose: (change: Partial<Chosen>) => void, clusters: string[], alerts: string[]}} props */
export function Filters({ chosen, choose, clusters, alerts }) {
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => choose({ [name]: event.target.value, offset: "0" });
  const select = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ any, /** @type {string[]} */ options) => html`
    <label><span>${label}</span>
      <select name=${name} value=${chosen[/** @type {keyof Chosen} */ (name)]} onChange=${set(name)}>
        <option value="">${any}</option>
        ${options.map((one) => html`<option value=${one} selected=${one === chosen[/** @type {keyof Chosen} */ (name)]}>${one}</option>`)}
      </select>
    </label>`;
  const isFiltered = ["q", "cluster", "state", "type", "alert"].some((name) => chosen[/** @type {keyof Chosen} */ (name)]);
  return html`<form class="filters" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <label class="wide"><span>Group</span><input type="search" name="q" value=${chosen.q} onInput=${set("q")} placeholder="part of a name" autocomplete="off" spellcheck="false" /></label>
    ${clusters.length > 1 && select("cluster", "Cluster", "any", clusters)}
    ${select("state", "State", "any", STATES)}
    ${select("type", "Type", "any", TYPES)}
    ${(alerts.length > 0 || chosen.alert) && select("alert", "Alert", "with or without", chosen.alert && !alerts.includes(chosen.alert) ? [chosen.alert, ...alerts] : alerts)}
    ${isFiltered && html`<button type="button" class="quiet" onClick=${() => choose({ q: "", cluster: "", state: "", type: "", alert: "", offset: "0" })}>Clear</button>`}
  </form>`;
}
