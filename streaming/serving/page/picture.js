/** The timeline as a file that needs nothing else: SVG with its rules inside, or PNG. */
import { pictureRules } from "./api.js";

const SCALE = 2, MARGIN = 16;
const TOKENS = ["--ground", "--paper", "--ink", "--dim", "--line", "--strong-line", "--link", "--focus", "--critical", "--critical-ground", "--warning", "--warning-ground", "--info", "--info-ground", "--stable", "--preparing", "--completing", "--empty", "--dead", "--lag", "--lag-ground", "--commits", "--beat", "--on-band", "--mono"];

/**
 * The drawn timeline as a document of its own, in the colours of the page.
 * @param {SVGSVGElement} svg
 * @returns {Promise<{text: string, width: number, height: number}>}
 */
export async function asSvg(svg) {
  const rules = await pictureRules();
  const seen = getComputedStyle(document.documentElement);
  const tokens = TOKENS.map((name) => `${name}:${seen.getPropertyValue(name).trim()};`).join("");
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const width = svg.viewBox.baseVal.width + 2 * MARGIN, height = svg.viewBox.baseVal.height + 2 * MARGIN;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `${-MARGIN} ${-MARGIN} ${width} ${height}`);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = `svg{${tokens}}\n${rules.replace(/\/\*[\s\S]*?\*\//g, "")}`;
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ x: -MARGIN, y: -MARGIN, width, height, fill: seen.getPropertyValue("--paper").trim() })) ground.setAttribute(name, String(value));
  copy.prepend(style, ground);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

/** @param {SVGSVGElement} svg @returns {Promise<Blob>} */
export async function asPng(svg) {
  const { text, width, height } = await asSvg(svg);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = width * SCALE;
  canvas.height = height * SCALE;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("the browser made no picture"))), "image/png"));
}

/** @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A file's name that every system takes. @param {string} group @param {number} from @param {string} ending */
export function fileName(group, from, ending) {
  const plain = group.replace(/[^\w.-]+/g, "_").slice(0, 60) || "group";
  return `groupwatch-${plain}-${new Date(from).toISOString().slice(0, 16).replace(/[:T]/g, "")}.${ending}`;
}

