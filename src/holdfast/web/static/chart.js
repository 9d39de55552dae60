// Charts in the colors of the page; drawn again when the color scheme or the width changes.

import uPlot from "./uPlot.esm.js";
import { el, full, short } from "./page.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * Draws series over event numbers, or over what `label` writes; `unit` writes values, `even` spaces the points evenly.
 * `choose(seq)` is called with the number that was clicked, `line` is a value to mark, `marks` are numbers to mark.
 * What is under the cursor is written below, by the names of the series.
 */
export function drawChart(node, data, series, { choose, label = (value) => `#${full(value)}`, unit = short, even = false, line = null, marks = [], now = null } = {}) {
  let plot = null;
  const readout = el("p", { class: "quiet readout" });
  node.after(readout);
  const drawn = { line, marks, now };
  const highest = (high) => Math.max(1, high * 1.05, (drawn.line ?? 0) <= 3 * high ? (drawn.line ?? 0) * 1.05 : 0);
  const whole = (values) => values.map((value) => (Number.isInteger(value) ? label(value) : null));
  const draw = () => {
    plot?.destroy();
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    plot = new uPlot(
      {
        width: node.clientWidth,
        height: node.clientHeight,
        padding: [8, even ? 24 : 28, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: { x: { time: false, distr: even ? 2 : 1 }, y: { range: (_, low, high) => [0, highest(high)] } },
        axes: [
          { ...axis, grid: { show: false }, size: 24, space: 70, incrs: even ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5], values: (_, values) => whole(values) },
          { ...axis, size: 48, space: 28, values: (_, values) => values.map((value) => unit(value)) },
        ],
        series: [{}, ...series.map((one) => ({
          stroke: color(one.color),
          fill: one.fill ? `${color(one.color)}22` : undefined,
          width: one.width ?? 1.5,
          dash: one.dash,
          points: { show: one.points ?? false, size: 3, stroke: color(one.color), fill: color(one.color) },
          spanGaps: one.gaps ?? false,
        }))],
        hooks: { drawClear: [(shown) => annotate(shown, drawn)], setCursor: [(shown) => write(shown.cursor.idx)] },
      },
      data,
      node,
    );
    if (choose) {
      plot.over.addEventListener("click", () => {
        const at = plot.cursor.idx;
        if (at !== null && at !== undefined) choose(data[0][at]);
      });
    }
  };
  const write = (index) => {
    if (drawn.now && (index ?? data[0].length - 1) === data[0].length - 1) return readout.replaceChildren(drawn.now);
    const at = index ?? data[0].length - 1;
    const values = series.map((one, number) => [one, data[number + 1][at]]).filter(([one]) => one.name);
    readout.replaceChildren(...values.flatMap(([one, value]) => [el("span", { class: `key ${one.color.slice(2)}${one.dash ? " dashed" : ""}` }),
      `${one.name} ${value === null || value === undefined ? "–" : unit === short ? full(value) : unit(value)}  `]),
      values.length ? `at ${label(data[0][at])}` : "", drawn.line && values.length ? `; compacts at ${full(drawn.line)}` : "");
    return undefined;
  };
  draw();
  write(null);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(() => plot.setSize({ width: node.clientWidth, height: node.clientHeight })).observe(node);
  return { update(next, more = {}) { data = next; Object.assign(drawn, more); plot.setData(next); write(null); } };
}

/** The threshold as a line across, compactions as lines down. */
function annotate(plot, { line, marks }) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.strokeStyle = color("--faint");
  const draw = (x0, y0, x1, y1) => { ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); ctx.stroke(); };
  for (const seq of marks) {
    const x = plot.valToPos(seq, "x", true);
    draw(x, bbox.top, x, bbox.top + bbox.height);
  }
  if (line !== null && line <= plot.scales.y.max) {
    ctx.strokeStyle = color("--soon");
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    const y = plot.valToPos(line, "y", true);
    draw(bbox.left, y, bbox.left + bbox.width, y);
  }
  ctx.restore();
}

function lastReported({ reported, seqs, sizes }) {
  const at = reported.slice(0, -1).findLastIndex(Boolean);
  const last = at < 0 ? "no reply has usage" : `last reported by the provider: ${full(reported[at])} at #${full(seqs[at])}`;
  return `Filled: counted here. Dashed: reported by the provider. Now ${full(sizes.at(-1))}; ${last}.`;
}

/** The size of a session over its events: what was counted, what its provider reported, and where it compacts. */
export function sizeChart(node, found, choose) {
  const series = (now) => [now.seqs, now.sizes, now.reported];
  const extra = (now) => ({ now: lastReported(now), line: now.threshold, marks: now.compactions.map(([seq]) => seq) });
  const chart = drawChart(node, series(found), [
    { name: "counted", color: "--accent", fill: true },
    { name: "reported by the provider", color: "--soft", gaps: true, dash: [4, 3] },
  ], { choose, ...extra(found) });
  return { update: (now) => chart.update(series(now), extra(now)) };
}
