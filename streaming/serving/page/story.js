/** What happened, in the words of `groupwatch explain`. */
import { html, useState } from "./lib.js";
import { clock, counted, day, printable } from "./text.js";

const FIRST = 8, MOST = 500;

/** @param {{story: any, error: Error|null, utc: boolean, to: number, text: string, look: (at: number) => void}} props */
export function Story({ story, error, utc, to, text, look }) {
  const [all, showAll] = useState(false);
  if (!story) return html`<section class="panel"><h2>In words</h2><p class="dim">${error ? printable(error.message) : "Reading …"}</p></section>`;
  const entries = story.entries.filter((/** @type {any} */ one) => one.at_ms <= to);
  const shown = entries.slice(all ? -MOST : -FIRST).reverse();
  const left = entries.length - shown.length + story.left_out;
  let before = "";
  return html`<section class="panel story" aria-labelledby="story-title">
    <div class="section-head"><h2 id="story-title">In words</h2>${text && html`<a href=${text}>as text</a>`}</div>
    <p>${printable(story.now)}</p>
    <p>${printable(story.summary)}</p>
    ${shown.length > 0 && html`<ol>${shown.map((/** @type {any} */ one) => {
      const date = day(one.at_ms, utc), isNew = date !== before;
      before = date;
      return html`<li class=${`is-${printable(one.kind)}`}>
        ${isNew && html`<p class="date">${date}</p>`}
        <button type="button" class="time" onClick=${() => look(one.at_ms)} aria-label=${`Show ${clock(one.at_ms, utc)} in the timeline`}>${clock(one.at_ms, utc)}</button>
        <div><p>${printable(one.text)}</p>${one.details.map((/** @type {string} */ detail) => html`<p class="dim">${printable(detail)}</p>`)}</div>
      </li>`;
    })}</ol>`}
    ${left > 0 && (all ? html`<p class="dim">${counted(left, "earlier entry", "earlier entries")} left out; the text has them.</p>` : html`<button type="button" class="more" onClick=${() => showAll(true)}>Show ${counted(left, "earlier entry", "earlier entries")}</button>`)}
    ${story.notes.map((/** @type {string} */ note) => html`<p class="dim">${printable(note)}</p>`)}
  </section>`;
}
