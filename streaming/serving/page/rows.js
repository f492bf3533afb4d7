/** The table of groups. */
import { groupAddress } from "./api.js";
import { firstOrder } from "./filters.js";
import { html } from "./lib.js";
import { Sparkline } from "./sparkline.js";
import { ago, compact, number, printable, span } from "./text.js";

/** @type {{key: string, label: string, sort?: string, className?: string}[]} */
const COLUMNS = [
  { key: "group", label: "Group", sort: "name" },
  { key: "state", label: "State", sort: "state" },
  { key: "lag", label: "Lag", sort: "lag", className: "n" },
  { key: "spark", label: "Last hour" },
  { key: "members", label: "Members", sort: "members", className: "n" },
  { key: "rebalances", label: "Rebalances", sort: "rebalances", className: "n" },
  { key: "alerts", label: "Alerts", sort: "trouble" },
];
const CALM = new Set(["Stable", "Empty", "Dead"]);

/** @param {string} state */
export const isCalm = (state) => CALM.has(state);

/** @param {{state: string}} props */
export function State({ state }) {
  return html`<span class=${`state is-${printable(state)}`}><i aria-hidden="true"></i>${printable(state)}</span>`;
}

/** @param {{groups: any[], at: number, chosen: any, choose: (change: any) => void, manyClusters: boolean}} props */
export function Rows({ groups, at, chosen, choose, manyClusters }) {
  return html`<table class="groups" role="table" aria-labelledby="groups-title">
    <thead role="rowgroup"><tr role="row">${COLUMNS.map((one) => html`<${Head} key=${one.key} column=${one} chosen=${chosen} choose=${choose} />`)}</tr></thead>
    <tbody role="rowgroup">${groups.map((group) => html`<${Row} key=${`${group.cluster}\0${group.group}`} group=${group} at=${at} manyClusters=${manyClusters} />`)}</tbody>
  </table>`;
}

/** @param {{column: any, chosen: any, choose: (change: any) => void}} props */
function Head({ column, chosen, choose }) {
  if (!column.sort) return html`<th scope="col" role="columnheader">${column.label}</th>`;
  const isSorted = chosen.sort === column.sort;
  const order = isSorted ? chosen.order || firstOrder(column.sort) : "";
  const flip = () => choose({ sort: column.sort, order: isSorted && order === firstOrder(column.sort) ? (order === "asc" ? "desc" : "asc") : "", offset: "0" });
  const aria = isSorted ? (order === "desc" ? "descending" : "ascending") : "none";
  return html`<th scope="col" role="columnheader" class=${column.className} aria-sort=${aria}>
    <button type="button" onClick=${flip}>${column.label}<i aria-hidden="true">${isSorted ? (order === "desc" ? " ↓" : " ↑") : ""}</i></button>
  </th>`;
}

/** @param {{group: any, at: number, manyClusters: boolean}} props */
function Row({ group, at, manyClusters }) {
  const records = group.lag.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.records, 0);
  const seconds = Math.max(0, ...group.lag.map((/** @type {any} */ one) => one.seconds));
  const held = group.held_up_by ?? [];
  return html`<tr role="row">
    <th scope="row" role="rowheader" data-label="Group">
      <a class="name" href=${groupAddress(group.cluster, group.group)}><bdi>${printable(group.group)}</bdi></a>
      ${(manyClusters || group.group_type !== "classic" || group.owner) && html` <span class="dim">${manyClusters && html`<bdi>${printable(group.cluster)}</bdi> `}${group.group_type !== "classic" && html`${printable(group.group_type)} `}${group.owner && html`<bdi>${printable(group.owner)}</bdi>`}</span>`}
    </th>
    <td role="cell" data-label="State">
      <${State} state=${group.state} />
      <span class="dim since">${group.state_since_ms < 0 ? "" : ago(at - group.state_since_ms)}</span>
      ${held.length > 0 && html`<span class="dim held">waits for <bdi>${printable(held[0])}</bdi>${held.length > 1 ? ` and ${held.length - 1} more` : ""}</span>`}
    </td>
    <td role="cell" class="n" data-label="Lag">${group.lag.length === 0 ? html`<span class="dim">unknown</span>` : html`<span title=${number(records)}>${compact(records)}</span> <span class="dim">${seconds >= 1 ? span(Math.round(seconds) * 1000) : ""}</span>`}</td>
    <td role="cell" data-label="Last hour"><${Sparkline} spark=${group.spark} /></td>
    <td role="cell" class="n" data-label="Members">${number(group.members)}</td>
    <td role="cell" class="n" data-label="Rebalances">${number(group.rebalances)}</td>
    <td role="cell" data-label="Alerts">${group.alerts.map((/** @type {string} */ one) => html`<span class="tag">${printable(one)}</span> `)}</td>
  </tr>`;
}
