/** The timeline with what moves it: buttons, keys, drag and wheel; and the tip beside a mark. */
import { groupAddress } from "./api.js";
import { fileName, asPng, asSvg, save } from "./picture.js";
import { useWidth } from "./hooks.js";
import { LANES_MAX, lanesOf } from "./lanes.js";
import { html, useEffect, useMemo, useRef, useState } from "./lib.js";
import { cost } from "./rebalance.js";
import { clock, span, who, words } from "./text.js";
import { Timeline, toldOf } from "./timeline.js";
import { fixed, LENGTHS, panned, untilNow, zoomed } from "./window.js";

const DRAG_MIN = 4;

/** @param {{window: any, seen: any, now: number, look: (window: any) => void, cluster: string, group: string, usual?: any}} props `usual`: all that was captured */
export function Toolbar({ window, seen, now, look, cluster, group, usual }) {
  const [said, say] = useState("");
  const drawn = () => /** @type {SVGSVGElement} */ (document.querySelector("svg.timeline"));
  const copy = async () => {
    const { from, to } = seen;
    const link = groupAddress(cluster, group, { from: String(Math.round(from)), to: String(Math.round(to)) });
    try {
      await navigator.clipboard.writeText(link);
      say("Link to this window copied");
    } catch {
      history.replaceState(null, "", link);
      say("The address is now this window’s link");
    }
  };
  const svg = async () => save(new Blob([(await asSvg(drawn())).text], { type: "image/svg+xml" }), fileName(group, seen.from, "svg"));
  const png = async () => save(await asPng(drawn()), fileName(group, seen.from, "png"));
  const attempt = (/** @type {() => Promise<void>} */ act) => () => act().catch((error) => say(`No picture: ${error.message}`));
  return html`<div class="section-head toolbar">
    <h2 id="timeline-title">Timeline</h2>
    <div class="segments" role="group" aria-label="Length of the window, until now">${LENGTHS.map((one) => html`<button type="button" aria-pressed=${window.length === one.ms ? "true" : "false"} onClick=${() => look(untilNow(one.ms))}>${one.label}</button>`)}${usual && html`<button type="button" aria-pressed=${window === usual ? "true" : "false"} onClick=${() => look(usual)}>All</button>`}</div>
    <div class="segments" role="group" aria-label="Move the window">
      <button type="button" aria-label="Earlier" title="Earlier (Shift and ←)" onClick=${() => look(panned(seen, -0.5, now))}>←</button>
      <button type="button" aria-label="Later" title="Later (Shift and →)" onClick=${() => look(panned(seen, 0.5, now))}>→</button>
      <button type="button" aria-label="Show less time" title="Show less time (+)" onClick=${() => look(zoomed(seen, 0.5))}>+</button>
      <button type="button" aria-label="Show more time" title="Show more time (−)" onClick=${() => look(zoomed(seen, 2))}>−</button>
    </div>
    <div class="segments" role="group" aria-label="Take it along">
      <button type="button" onClick=${copy}>Copy link</button>
      <button type="button" onClick=${attempt(svg)}>SVG</button>
      <button type="button" onClick=${attempt(png)}>PNG</button>
    </div>
    <span class="dim" role="status">${said}</span>
  </div>`;
}

/** @typedef {{from: number, x: number}|null} Drag where the pointer went down, and how far it is from there */

/** @param {{history: any, seen: {from: number, to: number}, now: number, utc: boolean, look: (window: any) => void, choose: (mark: any) => void, chosen: number, title: string}} props */
export function Stage({ history, seen, now, utc, look, choose, chosen, title }) {
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const width = useWidth(box);
  const [tip, point] = useState(/** @type {any} */ (null));
  const [focused, focus] = useState(-1);
  const [dragged, draw] = useState(/** @type {Drag} */ (null));
  const held = useRef(/** @type {Drag} */ (null));
  const drag = (/** @type {Drag} */ next) => {
    held.current = next; // events come faster than renders, so they read this
    draw(next);
  };
  const [all, showAll] = useState(false);
  const moved = dragged ? shifted(seen, dragged.x, width) : seen;
  useWheel(box, (event) => {
    const rect = box.current?.getBoundingClientRect();
    const part = rect ? (event.clientX - rect.left) / rect.width : 0.5;
    look(zoomed(seen, event.deltaY > 0 ? 1.25 : 0.8, seen.from + (seen.to - seen.from) * part));
  });
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const marks = [...(box.current?.querySelectorAll(".mark") ?? [])];
    const at = marks.indexOf(/** @type {Element} */ (document.activeElement));
    const act = /** @type {Record<string, () => void>} */ ({
      "+": () => look(zoomed(seen, 0.5)), "-": () => look(zoomed(seen, 2)),
      "S-ArrowLeft": () => look(panned(seen, -0.25, now)), "S-ArrowRight": () => look(panned(seen, 0.25, now)),
      ...(at < 0 ? {} : { ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1), Home: () => go(0), End: () => go(marks.length - 1) }),
    })[(event.shiftKey && event.key.startsWith("Arrow") ? "S-" : "") + event.key];
    function go(/** @type {number} */ next) {
      const to = Math.max(0, Math.min(marks.length - 1, next));
      focus(to);
      /** @type {SVGGElement} */ (marks[to]).focus();
    }
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  const down = (/** @type {PointerEvent} */ event) => {
    if (event.button === 0 && event.pointerType === "mouse" && !(/** @type {Element} */ (event.target).closest(".mark"))) drag({ from: event.clientX, x: 0 });
  };
  const move = (/** @type {PointerEvent} */ event) => {
    if (!held.current) return;
    if (event.buttons === 0) return drag(null);
    drag({ ...held.current, x: event.clientX - held.current.from });
  };
  const up = () => {
    if (!held.current) return;
    const { x } = held.current, { from, to } = shifted(seen, x, width);
    if (Math.abs(x) >= DRAG_MIN) look(to >= now ? fixed(now - (seen.to - seen.from), now) : fixed(from, to));
    drag(null);
  };
  // Each event of the server draws the page again, and this is thousands of elements: only what it shows counts.
  const drawn = useMemo(
    () => html`<${Timeline} history=${history} from=${moved.from} to=${moved.to} width=${width} now=${now} utc=${utc} allLanes=${all} title=${title} chosen=${chosen} focused=${focused} choose=${choose} point=${point} />`,
    [history, moved.from, moved.to, width, now, utc, all, title, chosen, focused],
  );
  return html`<div class=${dragged ? "stage is-dragged" : "stage"} ref=${box} onKeyDown=${keys} onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerLeave=${up}>
    ${width > 0 && drawn}
    ${tip && html`<${Tip} mark=${tip} width=${width} utc=${utc} />`}
    <${Legend} history=${history} all=${all} showAll=${showAll} />
  </div>`;
}

/** @param {{from: number, to: number}} seen @param {number} x @param {number} width */
function shifted({ from, to }, x, width) {
  const by = -(x / Math.max(1, width)) * (to - from);
  return { from: from + by, to: to + by };
}

/** The wheel with Ctrl or ⌘, as maps do; a plain wheel scrolls the page. @param {any} box @param {(event: WheelEvent) => void} turn */
function useWheel(box, turn) {
  const newest = useRef(turn);
  newest.current = turn;
  useEffect(() => {
    const take = (/** @type {WheelEvent} */ event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      newest.current(event);
    };
    box.current?.addEventListener("wheel", take, { passive: false });
    return () => box.current?.removeEventListener("wheel", take);
  }, []);
}

/** @param {{mark: any, width: number, utc: boolean}} props */
function Tip({ mark, width, utc }) {
  const one = toldOf(mark);
  const left = Math.max(0, Math.min(width - 320, mark.at + 14));
  return html`<div class="tip" style=${{ left: `${left}px`, top: `${mark.y}px` }} aria-hidden="true">
    <b>${mark.list.length > 1 ? `${mark.list.length} rebalances; one of them:` : "Rebalance"} ${clock(one.started_at_ms, utc)}</b>
    <div>${words(one.cause.kind)}${one.cause.member_id || one.cause.client_id ? html` <bdi class="name">${who(one.cause)}</bdi>` : ""}</div>
    <div class="dim">${one.ended_at_ms < 0 ? "still running" : `took ${span(one.ended_at_ms - one.started_at_ms)}`}${one.cost ? `; ${cost(one.cost)}` : ""}</div>
  </div>`;
}

/** @param {{history: any, all: boolean, showAll: (all: boolean) => void}} props */
function Legend({ history, all, showAll }) {
  const sign = (/** @type {any} */ drawn, /** @type {string} */ text) => html`<li><svg class="timeline" width="26" height="18" viewBox="0 0 26 18" aria-hidden="true">${drawn}</svg>${text}</li>`;
  const many = useMemo(() => lanesOf(history.members).length > LANES_MAX, [history]);
  return html`<div class="legend-row"><ul class="legend">
    ${sign(html`<rect class="beat" x="2" y="3" width="22" height="12" rx="2" />`, "heartbeats in time")}
    ${sign(html`<rect class="life" x="2" y="6" width="22" height="6" />`, "member, no heartbeat seen")}
    ${sign(html`<g><rect class="runs-out" x="2" y="3" width="20" height="12" /><path class="deadline" d="M22 0v18" /></g>`, "silent until its session ends")}
    ${sign(html`<path class="joined" d="M13 1v16" />`, "joined")}
    ${sign(html`<circle class="left" cx="13" cy="9" r="4" />`, "left")}
    ${sign(html`<path class="lost" d="M8 4l10 10M8 14l10 -10" />`, "lost")}
  </ul>${many && html`<button type="button" class="quiet" onClick=${() => showAll(!all)}>${all ? "Show fewer members" : "Show all members"}</button>`}</div>`;
}
