/** Lag and rebalances of the last hour, small enough for a row. */
import { html } from "./lib.js";
import { compact, counted } from "./text.js";

const WIDTH = 120, HEIGHT = 24, TICK = 5;

/**
 * The line's path; null breaks it, and a lone point becomes a dot.
 * @param {(number|null)[]} values @param {number} top
 */
export function linePath(values, top) {
  const step = WIDTH / Math.max(1, values.length - 1);
  const floor = HEIGHT - TICK - 1;
  let path = "", isDrawing = false;
  values.forEach((value, i) => {
    if (value === null || value === undefined) {
      isDrawing = false;
      return;
    }
    const x = (i * step).toFixed(1), y = (floor - (value / top) * (floor - 1)).toFixed(1);
    const alone = !isDrawing && (values[i + 1] ?? null) === null;
    path += `${isDrawing ? "L" : "M"}${x} ${y}${alone ? "h1.5" : ""}`;
    isDrawing = true;
  });
  return path;
}

/** @param {{spark: {step_ms: number, lag: (number|null)[], rebalances: number[]}|null|undefined}} props */
export function Sparkline({ spark }) {
  if (!spark || !spark.lag) return null;
  const known = spark.lag.filter((one) => one !== null);
  const top = Math.max(1, .../** @type {number[]} */ (known));
  const rebalances = (spark.rebalances ?? []).reduce((sum, one) => sum + one, 0);
  if (known.length === 0 && rebalances === 0) return html`<span class="dim">no data</span>`;
  const step = WIDTH / Math.max(1, (spark.rebalances ?? []).length);
  const words = `last hour: lag up to ${known.length ? compact(top === 1 ? Math.max(0, .../** @type {number[]} */ (known)) : top) : "unknown"}, ${counted(rebalances, "rebalance")}`;
  return html`<svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} width=${WIDTH} height=${HEIGHT} role="img" aria-label=${words}>
    <title>${words}</title>
    <path class="spark-lag" d=${linePath(spark.lag, top)} />
    ${(spark.rebalances ?? []).map((count, i) => count > 0 && html`<rect class="spark-rebalance" x=${(i * step).toFixed(1)} y=${HEIGHT - Math.min(TICK, 2 + count)} width=${Math.max(1.5, step - 0.5).toFixed(1)} height=${Math.min(TICK, 2 + count)} />`)}
  </svg>`;
}
