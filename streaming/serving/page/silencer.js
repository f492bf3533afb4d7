/** The dialog that silences what fires on a group for a while, or acknowledges one alert until it is over. */
import { post } from "./api.js";
import { remember, remembered } from "./hooks.js";
import { html, useEffect, useRef, useState } from "./lib.js";
import { printable } from "./text.js";

const ENDS = ["30m", "1h", "2h", "4h", "8h", "24h"];

/** A pattern for exactly this name: the server takes regular expressions. @param {string} name */
export const exactly = (name) => name.replace(/[\\^$.*+?()[\]{}|\/-]/g, "\\$&");

/**
 * The body of POST /api/v1/silences.
 * @param {any} about {alert, kind: "acknowledge"|"silence"}
 * @param {{author: string, comment: string, end: string, all: boolean}} given
 */
export function request(about, given) {
  const { alert, kind } = about;
  const common = { author: given.author, comment: given.comment };
  if (kind === "acknowledge") return { ...common, alert_id: alert.id };
  return {
    ...common,
    end: given.end,
    clusters: [alert.cluster],
    ...(alert.group ? { groups: [exactly(alert.group)] } : {}),
    ...(given.all && alert.group ? {} : { alerts: [alert.name] }),
  };
}

/** @param {{about: any, me: any, close: () => void}} props */
export function Silencer({ about, me, close }) {
  const dialog = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const [error, fail] = useState("");
  const [busy, work] = useState(false);
  const { alert, kind } = about;
  const isAck = kind === "acknowledge";
  useEffect(() => dialog.current?.showModal(), []);

  /** @param {Event} event */
  async function send(event) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
    const given = { author: text("author"), comment: text("comment"), end: text("end"), all: form.get("all") !== null };
    remember("groupwatch.author", given.author);
    work(true);
    try {
      await post("api/v1/silences", request(about, given));
      about.done?.();
      dialog.current?.close();
    } catch (refused) {
      fail(/** @type {Error} */ (refused).message);
      work(false);
    }
  }
  const name = alert.group || alert.cluster;
  return html`<dialog ref=${dialog} onClose=${close} aria-labelledby="silencer-title">
    <form onSubmit=${send}>
      <h2 id="silencer-title">${isAck ? "Acknowledge" : "Silence"} ${printable(alert.name)}</h2>
      <p>
        ${isAck ? "Nobody is told again about this alert of " : "Receivers are not told of it while the silence lasts: "}
        <bdi class="name">${printable(name)}</bdi>${isAck ? " until it is resolved. It stays visible here." : ". It stays visible here."}
      </p>
      <label>Your name <input name="author" required maxlength="200" autocomplete="username" defaultValue=${me?.user || remembered("groupwatch.author") || ""} /></label>
      <label>Why <input name="comment" maxlength="1000" placeholder=${isAck ? "what you are doing about it" : "the reason, or a ticket"} /></label>
      ${!isAck && html`<label>For <select name="end" defaultValue="2h">${ENDS.map((one) => html`<option value=${one} selected=${one === "2h"}>${one}</option>`)}</select></label>`}
      ${!isAck && alert.group && html`<label class="check"><input type="checkbox" name="all" /> every alert of this group</label>`}
      ${error && html`<p class="error" role="alert">${printable(error)}</p>`}
      <div class="buttons">
        <button type="button" onClick=${() => dialog.current?.close()}>Cancel</button>
        <button type="submit" class="primary" disabled=${busy}>${isAck ? "Acknowledge" : "Silence"}</button>
      </div>
    </form>
  </dialog>`;
}
