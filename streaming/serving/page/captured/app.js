/** The view of a group in a file of its own: a head that says what was captured, a chooser, and the group. */
import { Group } from "../group.js";
import { useUtc } from "../hooks.js";
import { html, render, useMemo, useState } from "../lib.js";
import { counted, moment, printable, shortened, zone } from "../text.js";
import { fixed } from "../window.js";
import { captured, groupAddress, groupHash } from "./api.js";

/** Space before the first and behind the last that is known, in parts of the whole. */
const MARGIN = 0.03, APART_MS = 60_000;

/** The number of the group that the address names. */
const named = () => Math.max(0, captured.groups.findIndex((/** @type {any} */ one) => groupHash(one.cluster, one.group) === location.hash));

function Captured() {
  const [utc, setUtc] = useUtc();
  const [at, choose] = useState(named);
  const one = captured.groups[at], usual = useMemo(() => whole(one), [at]);
  const go = (/** @type {number} */ next) => {
    const { cluster, group } = captured.groups[next];
    history.replaceState(null, "", groupAddress(cluster, group));
    choose(next);
  };
  const shared = { utc, news: { kind: "start", content: {}, count: 0 }, me: null, silence: null, usual };
  return html`
    <header class="top">
      <span class="brand">group<b>watch</b></span>
      <${Origin} utc=${utc} />
      <button type="button" class="quiet" onClick=${() => setUtc(!utc)} aria-label=${`Times are in ${zone(utc)}; show ${utc ? "local time" : "UTC"}`}>${zone(utc)}</button>
    </header>
    <main id="main">
      ${captured.groups.length > 1 && html`<${Chooser} at=${at} go=${go} />`}
      <${Group} key=${at} cluster=${one.cluster} group=${one.group} ...${shared} />
    </main>
  `;
}

/** @param {{utc: boolean}} props */
function Origin({ utc }) {
  const { made_at_ms: made, until_ms: until, source, notes } = captured;
  const end = Math.abs(made - until) > APART_MS ? `; it ends ${moment(until, utc)}` : "";
  return html`<span class="grow origin"><span>Captured ${moment(made, utc)} from <bdi>${printable(source)}</bdi>${end}.</span>
    ${notes.map((/** @type {string} */ note) => html`<span class="notice">${printable(note)}</span>`)}</span>`;
}

/** @param {{at: number, go: (next: number) => void}} props */
function Chooser({ at, go }) {
  return html`<label class="chooser">Group
    <select onChange=${(/** @type {any} */ event) => go(Number(event.currentTarget.value))}>
      ${captured.groups.map((/** @type {any} */ one, /** @type {number} */ i) => html`<option value=${i} selected=${i === at}>${shortened(one.group, 60)}${trouble(one.history)}</option>`)}
    </select>
    <span class="dim">${counted(captured.groups.length, "group")}${captured.left_out > 0 ? `, those in most trouble; ${counted(captured.left_out, "more")} left out` : ""}</span>
  </label>`;
}

/** @param {any} history */
function trouble(history) {
  const told = [history.alerts.length && counted(history.alerts.length, "alert"), history.rebalances.length && counted(history.rebalances.length, "rebalance")].filter(Boolean);
  return told.length ? ` (${told.join(", ")})` : "";
}

/** The window that shows all that is known. @param {any} one */
function whole({ history }) {
  const space = Math.max(1_000, (history.to_ms - history.from_ms) * MARGIN);
  return fixed(history.from_ms - space, history.to_ms + space);
}

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(html`<${Captured} />`, root);
}
