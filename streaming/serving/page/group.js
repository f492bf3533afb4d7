/** One group: what is wrong and what to do, then its timeline, the chosen rebalance, and the story in words. */
import { Alerts } from "./alerts.js";
import { address, groupAddress, groupPath, now } from "./api.js";
import { useAnswer, useNow } from "./hooks.js";
import { html, useEffect, useMemo, useRef, useState } from "./lib.js";
import { Rebalance } from "./rebalance.js";
import { State } from "./rows.js";
import { Story } from "./story.js";
import { ago, compact, counted, number, printable, span } from "./text.js";
import { toldOf } from "./timeline.js";
import { Stage, Toolbar } from "./stage.js";
import { bounds, fixed, query, windowInAddress } from "./window.js";

const DRAW_MS = 1_000, ASK_MS = 5_000, STORY_MS = 15_000, DEBOUNCE_MS = 250;
/** A long window is drawn and asked for less often: a pixel of it is minutes. */
const PARTS = 400, MOST_MS = 60_000;
/** Requests end on whole steps, so that the same window is asked for once. */
const STEP_MS = 1_000;
/** Two stories are read at a time; a third has to ask again. */
const BUSY = 429;

/** @param {any} props cluster, group, and what every view gets */
export function Group({ cluster, group, ...shared }) {
  const [window, setWindow] = useState(windowInAddress(shared.usual));
  const [mark, setMark] = useState(/** @type {any} */ (null));
  const at = useNow(often(window, DRAW_MS));
  const seen = bounds(window, at), asked = useAsked(window);
  const detail = useAnswer(groupPath(cluster, group), { told: shared.told });
  const alerts = useAnswer(`api/v1/alerts?${new URLSearchParams({ cluster, group })}`);
  const history = useAnswer(groupPath(cluster, group, "/history", { from: String(asked.from), to: String(asked.to) }), { delayMs: DEBOUNCE_MS });
  const storySince = `${Math.max(60_000, asked.storyBack)}ms`;
  const story = useAnswer(groupPath(cluster, group, "/explain", { since: storySince }), { delayMs: 2 * DEBOUNCE_MS });
  const toldAt = useRef(Date.now());
  const look = (/** @type {any} */ next) => {
    setWindow(next);
    globalThis.history.replaceState(null, "", groupAddress(cluster, group, query(next)));
  };
  useEffect(() => {
    document.title = `${printable(group)} – groupwatch`;
  }, [group]);
  useEffect(() => {
    const { kind, content, count } = shared.news;
    if (count === 0) return;
    const isOurs = kind !== "groups" || content.truncated || (content.cluster === cluster && (content.changed ?? [group]).includes(group));
    if (kind === "alerts" || kind === "again" || kind === "poll") alerts.again();
    if (kind !== "alerts" && isOurs) detail.again();
    // A fixed window is asked for once, but for what it has of the present.
    if (kind !== "alerts" && isOurs && !window.length && (history.error || window.to > (history.answer?.at_ms ?? 0))) history.again();
    // A story is read from the topics: not at each of a storm's rebalances.
    if (kind !== "beat" && isOurs && window.length && Date.now() - toldAt.current >= STORY_MS) {
      toldAt.current = Date.now();
      story.again();
    }
  }, [shared.news.count]);
  const list = mark ? (history.answer?.rebalances ?? []).filter((/** @type {any} */ one) => mark.starts.includes(one.started_at_ms)) : [];
  const chosen = list.find((/** @type {any} */ one) => one.started_at_ms === mark.chosen) ?? list[list.length - 1] ?? null;
  const choose = (/** @type {any} */ one) => setMark({ starts: one.list.map((/** @type {any} */ it) => it.started_at_ms), chosen: toldOf(one).started_at_ms });
  useEffect(() => {
    if (/** @type {any} */ (story.error)?.status !== BUSY) return;
    const timer = setTimeout(story.again, ASK_MS);
    return () => clearTimeout(timer);
  }, [story.error]);
  const reload = () => alerts.again();
  const isRemembered = alerts.answer?.total || history.answer?.rebalances?.length || story.answer;
  if (detail.error && !detail.answer && !isRemembered) return html`<${Missing} cluster=${cluster} group=${group} error=${detail.error} />`;
  const problem = history.answer?.problem || (history.error ? history.error.message : "");
  return html`
    <${Title} cluster=${cluster} group=${group} detail=${isGone(detail.error) ? null : detail.answer} at=${at} />
    ${isGone(detail.error) && html`<p class="warn-text" role="status">${printable(/** @type {any} */ (detail.error).message)}</p>`}
    <section aria-label="What is wrong and what to do">
      ${alerts.answer && (alerts.answer.total ? html`<${Alerts} list=${alerts.answer} at=${at} shared=${shared} reload=${reload} isOnGroup=${true} />` : html`<p class="calm">Nothing fires on this group.</p>`)}
    </section>
    <section class="panel timeline-panel" aria-labelledby="timeline-title">
      <${Toolbar} window=${window} seen=${seen} now=${at} look=${look} cluster=${cluster} group=${group} usual=${shared.usual} />
      ${history.answer
        ? html`<${Stage} history=${history.answer} seen=${seen} now=${at} utc=${shared.utc} look=${look} choose=${choose} chosen=${chosen?.started_at_ms ?? -1} title=${printable(group)} />`
        : html`<p class="dim">${problem ? "" : "Reading …"}</p>`}
      ${problem && html`<p class="warn-text">${printable(problem)}</p>`}
      ${(history.answer?.notes ?? []).map((/** @type {string} */ note) => html`<p class="dim note">${printable(note)}</p>`)}
    </section>
    <div class="beside">
      ${history.answer && html`<${Rebalance} list=${list} chosen=${chosen} history=${history.answer} utc=${shared.utc} choose=${(/** @type {any} */ one) => setMark({ ...mark, chosen: one.started_at_ms })} />`}
      <${Story} story=${story.answer} error=${story.error} utc=${shared.utc} to=${seen.to} text=${address(groupPath(cluster, group, "/explain", { format: "text", since: storySince }))} look=${(/** @type {number} */ moment) => look(fixed(moment - 150_000, moment + 150_000))} />
    </div>
  `;
}

/** Whether the server says that it knows no such group. @param {any} error */
const isGone = (error) => error?.status === 404;

/** @param {any} window @param {number} leastMs */
const often = (window, leastMs) => Math.max(leastMs, Math.min(MOST_MS, (window.length || window.to - window.from) / PARTS));

/** What is asked of the server for a window; one that ends now is asked for again and again. @param {any} window */
function useAsked(window) {
  const tick = useNow(often(window, ASK_MS));
  const { from, to } = bounds(window, Math.floor(tick / STEP_MS) * STEP_MS);
  const back = useMemo(() => window.length || Math.max(0, Math.ceil((now() - window.from) / STEP_MS) * STEP_MS), [window]);
  return { from, to, storyBack: back };
}

/** @param {{cluster: string, group: string, error: Error}} props */
function Missing({ cluster, group, error }) {
  return html`<h1><bdi class="name">${printable(group)}</bdi></h1>
    <p>${printable(error.message)}</p>
    <p class="dim">${isGone(error) && html`It may be gone, or not watched on <bdi>${printable(cluster)}</bdi>. `}<a href=${address("")}>All groups</a></p>`;
}

/** @param {{cluster: string, group: string, detail: any, at: number}} props */
function Title({ cluster, group, detail, at }) {
  const report = detail?.report;
  const records = (detail?.lag ?? []).reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.records, 0);
  const seconds = Math.max(0, ...(detail?.lag ?? []).map((/** @type {any} */ one) => one.seconds));
  return html`<div class="group-title">
    <nav aria-label="Where this is">${address("") && html`<a href=${address("")}>Groups</a> <span class="dim">/ </span>`}<span class="dim"><bdi>${printable(cluster)}</bdi></span></nav>
    <h1><bdi class="name">${printable(group)}</bdi></h1>
    ${report && html`<p class="facts">
      <span><${State} state=${report.state} />${report.state_since_ms >= 0 && html` <span class="dim">for ${ago(at - report.state_since_ms)}</span>`}</span>
      <span>${counted(report.members.length, "member")}</span>
      <span>generation ${number(report.generation)}</span>
      ${detail.lag.length > 0 && html`<span title=${number(records)}>lag ${compact(records)}${seconds >= 1 ? `, ${span(Math.round(seconds) * 1000)}` : ""}</span>`}
      <span class="dim">${printable(report.group_type)}${report.protocol ? `, ${printable(report.protocol)}` : ""}</span>
    </p>`}
  </div>`;
}
