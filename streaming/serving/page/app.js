/** Chooses the view for the address, and keeps the head of the page: connection, time zone, what is not ready. */
import { address, here, now } from "./api.js";
import { Fleet } from "./fleet.js";
import { Group } from "./group.js";
import { isPassing, useAnswer, useUtc } from "./hooks.js";
import { html, render, useCallback, useEffect, useRef, useState } from "./lib.js";
import { connect } from "./live.js";
import { Silencer } from "./silencer.js";
import { clock, printable, zone } from "./text.js";

/** Cluster and group of the address, or null on the fleet's page; slashes that are not encoded belong to the group. */
function named() {
  const given = new URLSearchParams(location.search);
  if (here() === "group") return { cluster: given.get("cluster") ?? "", group: given.get("group") ?? "" };
  const rest = here().replace(/^groups\//, "");
  if (rest === here() || !rest.includes("/")) return null;
  const at = rest.indexOf("/");
  try {
    return { cluster: decodeURIComponent(rest.slice(0, at)), group: decodeURIComponent(rest.slice(at + 1)) };
  } catch {
    return { cluster: rest.slice(0, at), group: rest.slice(at + 1) };
  }
}

function App() {
  const [utc, setUtc] = useUtc();
  const [link, setLink] = useState({ state: "connecting", sinceMs: now() });
  const [news, setNews] = useState({ kind: "start", content: /** @type {any} */ ({}), count: 0 });
  const [silencing, silence] = useState(/** @type {any} */ (null));
  const connection = useRef(/** @type {ReturnType<typeof connect>|null} */ (null));
  const me = useAnswer("api/v1/me");
  const ready = useAnswer("ready");
  useEffect(() => {
    connection.current = connect(
      (state, sinceMs) => setLink({ state, sinceMs }),
      (event, content) => {
        // No event tells of what began to fire between the first answers and "hello".
        const kind = event === "hello" ? "alerts" : event;
        setNews((/** @type {any} */ before) => ({ kind, content, count: before.count + 1 }));
        if (kind !== "groups") ready.again();
      },
    );
    return () => connection.current?.stop();
  }, []);
  const told = useCallback((/** @type {Error|null} */ error) => {
    if (error && isPassing(error)) connection.current?.failed();
    else connection.current?.fine();
  }, []);
  const shared = { utc, news, told, isLost: link.state === "lost", me: me.answer, silence };
  const place = named();
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <header class="top">
      <a class="brand" href=${address("")}>group<b>watch</b></a>
      <${Ready} ready=${ready.answer} />
      <${Connection} link=${link} utc=${utc} />
      <button type="button" class="quiet" onClick=${() => setUtc(!utc)} aria-label=${`Times are in ${zone(utc)}; show ${utc ? "local time" : "UTC"}`}>
        ${zone(utc)}
      </button>
    </header>
    <main id="main" tabindex="-1" class=${link.state === "lost" ? "stale" : ""}>
      ${place ? html`<${Group} ...${place} ...${shared} />` : html`<${Fleet} ...${shared} />`}
    </main>
    ${silencing && html`<${Silencer} about=${silencing} me=${me.answer} close=${() => silence(null)} />`}
  `;
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** @param {{ready: any}} props */
function Ready({ ready }) {
  const late = (ready?.clusters ?? []).filter((/** @type {any} */ one) => !one.ready);
  if (!ready || late.length === 0) return html`<span class="grow"></span>`;
  const names = late.map((/** @type {any} */ one) => printable(one.cluster)).join(", ");
  return html`<span class="grow notice" role="status">Not ready yet: ${names}. What is shown may lack groups.</span>`;
}

const SAID = /** @type {Record<string, string>} */ ({ connecting: "connecting", live: "live", polling: "updated every 5 s" });

/** @param {{link: {state: string, sinceMs: number}, utc: boolean}} props */
function Connection({ link, utc }) {
  const lost = link.state === "lost";
  const text = lost ? `Connection lost at ${clock(link.sinceMs, utc)}, trying again` : SAID[link.state];
  return html`<span class=${`connection is-${link.state}`} role="status" aria-live=${lost ? "assertive" : "polite"}>
    <i aria-hidden="true"></i>${text}
  </span>`;
}

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(html`<${App} />`, root);
}
