// A report of the lab: the curve over budgets.

import { drawChart } from "./chart.js";
import { bindKeys } from "./keys.js";
import { byId, short } from "./page.js";

const node = byId("curve");
if (node) {
  const { budgets, lines, main } = JSON.parse(node.dataset.curve);
  const series = lines.map((_, at) => (main && at === lines.length - 1 ? { color: "--accent", width: 2.5 } : { color: "--faint" }));
  if (budgets.length > 1) drawChart(node, [budgets, ...lines], series, { label: short, unit: (value) => value.toFixed(1), even: true });
  else node.replaceWith("One budget was measured: the table has it.");
}
bindKeys({});
