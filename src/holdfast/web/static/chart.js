// Charts in the colors of the page; drawn again when the color scheme or the width changes.

import uPlot from "./uPlot.esm.js";
import { short } from "./page.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * Draws series over event numbers, or over what `label` writes; `unit` writes values, `even` spaces the points evenly.
 * `choose(seq)` is called with the number that was clicked.
 */
export function drawChart(node, data, series, { choose, label = (value) => `#${value}`, unit = short, even = false } = {}) {
  let plot = null;
  const draw = () => {
    plot?.destroy();
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    plot = new uPlot(
      {
        width: node.clientWidth,
        height: node.clientHeight,
        padding: [8, even ? 24 : 16, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
        scales: { x: { time: false, distr: even ? 2 : 1 }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.05)] } },
        axes: [
          { ...axis, grid: { show: false }, size: 24, values: (_, values) => values.map((value) => label(value)) },
          { ...axis, size: 48, space: 28, values: (_, values) => values.map((value) => unit(value)) },
        ],
        series: [{}, ...series.map((one) => ({
          stroke: color(one.color),
          fill: one.fill ? `${color(one.color)}22` : undefined,
          width: one.width ?? 1.5,
          points: { show: false },
          spanGaps: one.gaps ?? false,
        }))],
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
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(() => plot.setSize({ width: node.clientWidth, height: node.clientHeight })).observe(node);
  return { update(next) { data = next; plot.setData(next); } };
}
