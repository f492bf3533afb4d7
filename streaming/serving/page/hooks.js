/** What several views need of the browser: preferences, ticking time, answers of the server. */
import { get, isAborted, now } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./lib.js";

/** A request that takes longer is given up when somebody asks again. */
const PATIENCE_MS = 20_000;
const RETRY_MS = 5_000;

/** Whether the same question may be answered later: nobody answered, or the server could not. @param {any} error */
export const isPassing = (error) => !error.status || error.status >= 500;

/** Whether times are shown in UTC; kept in this browser. @returns {[boolean, (utc: boolean) => void]} */
export function useUtc() {
  const [utc, set] = useState(remembered("groupwatch.utc") !== "no");
  return [utc, (value) => {
    remember("groupwatch.utc", value ? "yes" : "no");
    set(value);
  }];
}

/** @param {string} key */
export function remembered(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** @param {string} key @param {string} value */
export function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    /* private windows have no storage */
  }
}

/** The server's time, again every `everyMs`. @param {number} everyMs */
export function useNow(everyMs) {
  const [at, set] = useState(now());
  useEffect(() => {
    const timer = setInterval(() => set(now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  // Until the first answer the server's clock is not known: the browser's may be hours ahead or behind.
  const present = now();
  return Math.min(present, Math.max(at, present - everyMs * 2));
}

/**
 * The newest answer for `path`. A stale request is ended, and a stale answer never shown; after a failure the
 * last answer stays, with the error beside it, and what the server could not answer is asked again. Whoever asks
 * again meanwhile is answered after the request that runs: a storm of news ends none.
 * @param {string|null} path null asks nothing
 * @param {{delayMs?: number, told?: (error: Error|null) => void}} [options]
 * @returns {{answer: any, path: string|null, error: Error|null, again: () => void}}
 */
export function useAnswer(path, { delayMs = 0, told } = {}) {
  const [kept, keep] = useState(/** @type {{answer: any, path: string|null, error: Error|null}} */ ({ answer: null, path: null, error: null }));
  const running = useRef(/** @type {{path: string, stop: AbortController, beganMs: number, more: boolean}|null} */ (null));
  const timer = useRef(0);
  const wanted = useRef({ path, told });
  wanted.current = { path, told };
  const again = useCallback(() => {
    const asked = wanted.current.path;
    if (asked === null) return;
    const before = running.current;
    if (before?.path === asked && Date.now() - before.beganMs < PATIENCE_MS) {
      before.more = true;
      return;
    }
    before?.stop.abort();
    clearTimeout(timer.current);
    const turn = (running.current = { path: asked, stop: new AbortController(), beganMs: Date.now(), more: false });
    const end = (/** @type {Error|null} */ error) => {
      if (running.current === turn) running.current = null;
      wanted.current.told?.(error);
      if (error && isPassing(error)) timer.current = setTimeout(again, RETRY_MS);
      else if (turn.more) again();
    };
    get(asked, turn.stop.signal).then(
      (answer) => {
        keep({ answer, path: asked, error: null });
        end(null);
      },
      (error) => {
        if (isAborted(error)) return;
        keep((/** @type {any} */ before) => ({ ...before, error }));
        end(error);
      },
    );
  }, []);
  useEffect(() => {
    const soon = setTimeout(again, kept.answer === null ? 0 : delayMs);
    return () => clearTimeout(soon);
  }, [path]);
  useEffect(() => () => {
    running.current?.stop.abort();
    clearTimeout(timer.current);
  }, []);
  return { ...kept, again };
}

/** The width of an element in whole pixels, as it changes. @param {{current: Element|null}} ref */
export function useWidth(ref) {
  const [width, set] = useState(0);
  useEffect(() => {
    if (!ref.current) return;
    const watcher = new ResizeObserver(([entry]) => set(Math.floor(entry.contentRect.width)));
    watcher.observe(ref.current);
    return () => watcher.disconnect();
  }, []);
  return width;
}
