/** What several views need of the browser: preferences, ticking time, answers of the server. */
import { get, isAborted, now } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./lib.js";

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
 * last answer stays, with the error beside it.
 * @param {string|null} path null asks nothing
 * @param {{delayMs?: number, told?: (error: Error|null) => void}} [options]
 * @returns {{answer: any, path: string|null, error: Error|null, again: () => void}}
 */
export function useAnswer(path, { delayMs = 0, told } = {}) {
  const [kept, keep] = useState(/** @type {{answer: any, path: string|null, error: Error|null}} */ ({ answer: null, path: null, error: null }));
  const running = useRef(/** @type {AbortController|null} */ (null));
  const wanted = useRef({ path, told });
  wanted.current = { path, told };
  const again = useCallback(() => {
    const asked = wanted.current.path;
    if (asked === null) return;
    running.current?.abort();
    const stop = (running.current = new AbortController());
    get(asked, stop.signal).then(
      (answer) => {
        keep({ answer, path: asked, error: null });
        wanted.current.told?.(null);
      },
      (error) => {
        if (isAborted(error)) return;
        keep((/** @type {any} */ before) => ({ ...before, error }));
        wanted.current.told?.(error);
      },
    );
  }, []);
  useEffect(() => {
    const timer = setTimeout(again, kept.answer === null ? 0 : delayMs);
    return () => clearTimeout(timer);
  }, [path]);
  useEffect(() => () => running.current?.abort(), []);
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
