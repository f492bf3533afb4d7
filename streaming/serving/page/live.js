/**
 * Keeps a view up to date: server-sent events where the server has them, else a look every few seconds.
 *
 * States: "connecting", "live", "polling" (no events there), "lost".
 */
import { address, learnClock, now } from "./api.js";

const BEAT_MS = 10_000;
const SILENCE_MAX_MS = 2.5 * BEAT_MS;
const POLL_MS = 5_000;
/** A tab that nobody sees holds no connection, since a browser has six for one server; it asks now and then. */
const HIDDEN_MS = 30_000;
const LOOK_MS = 10_000;
/** Turns of asking until a server without room is asked for events again. */
const TURNS = 6;
const RETRY_MS = [500, 1_000, 2_000, 4_000, 8_000];

/**
 * @param {(state: string, sinceMs: number) => void} told is called at each change of state
 * @param {(kind: string, content: any) => void} heard takes each event; "poll" where there are none
 * @returns {{stop: () => void, failed: () => void, fine: () => void}}
 */
export function connect(told, heard) {
  let source = /** @type {EventSource|null} */ (null);
  let timer = 0, watchdog = 0, tries = 0, opened = 0, state = "", stopped = false;

  const say = (/** @type {string} */ next) => {
    if (next !== state) told((state = next), now());
  };
  const beat = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(broken, SILENCE_MAX_MS);
    tries = 0;
    const again = state === "lost";
    say("live");
    if (again) heard("again", {});
  };
  const take = (/** @type {string} */ kind) => (/** @type {MessageEvent} */ event) => {
    let content = {};
    try {
      content = JSON.parse(event.data);
    } catch {
      /* a beat without content */
    }
    learnClock(/** @type {any} */ (content).at_ms);
    beat();
    heard(kind, content);
  };
  function broken() {
    source?.close();
    clearTimeout(watchdog);
    if (stopped) return;
    say("lost");
    clearTimeout(timer);
    timer = setTimeout(open, RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]);
  }
  async function open() {
    if (stopped) return;
    const mine = ++opened;
    const answer = await look();
    if (stopped || mine !== opened) return;
    if (answer === 0) return broken();
    if (answer !== 200) return poll(answer === 404 ? Infinity : TURNS);
    source = new EventSource(address("api/v1/events"));
    for (const kind of ["hello", "groups", "alerts", "beat"]) source.addEventListener(kind, take(kind));
    source.addEventListener("error", broken);
    clearTimeout(watchdog);
    watchdog = setTimeout(broken, SILENCE_MAX_MS);
  }
  /** Asks in turns; after some of them there may be room for a listener. @param {number} turns */
  function poll(turns) {
    source = null;
    if (state !== "polling") say("polling");
    const next = (/** @type {number} */ left) => {
      timer = setTimeout(() => {
        heard("poll", {});
        if (left > 1 || state === "lost") next(Math.max(1, left - 1));
        else open();
      }, POLL_MS);
    };
    next(turns);
  }
  function doze() {
    timer = setTimeout(() => {
      heard("poll", {});
      doze();
    }, HIDDEN_MS);
  }
  function turned() {
    opened += 1;
    source?.close();
    source = null;
    clearTimeout(timer);
    clearTimeout(watchdog);
    if (document.hidden) return doze();
    heard("again", {});
    open();
  }
  document.addEventListener("visibilitychange", turned);
  say("connecting");
  if (document.hidden) doze();
  else open();
  return {
    stop() {
      stopped = true;
      document.removeEventListener("visibilitychange", turned);
      source?.close();
      clearTimeout(timer);
      clearTimeout(watchdog);
    },
    // Without events, the view's own requests tell whether the server is there.
    failed: () => state === "polling" && say("lost"),
    fine: () => state === "lost" && source === null && say("polling"),
  };
}

/** The status with which the server answers who wants events: 404 without them, 503 without room or in time, 0 not at all. */
async function look() {
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(), LOOK_MS);
  try {
    return (await fetch(address("api/v1/events"), { signal: stop.signal })).status;
  } catch {
    return stop.signal.aborted ? 503 : 0;
  } finally {
    clearTimeout(late);
    stop.abort();
  }
}
