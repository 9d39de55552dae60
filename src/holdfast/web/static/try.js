// Two compactions compared at the same moment; nothing is written until "Compact now", which asks.

import { ask } from "./confirm.js";
import { folded } from "./json_tree.js";
import { bindKeys } from "./keys.js";
import { act, byId, calls, el, figures, full, quietly, read, remember, sessionPath, short, show } from "./page.js";

const NAMES = ["budget1", "budget2", "choice1", "choice2", "at"];
const known = new Map();
const running = [null, null];
const found = [null, null];

for (const [name, value] of new URLSearchParams(location.search)) if (NAMES.includes(name)) byId(name).value = value;

function address(side) {
  const [kind, name] = chosen(side);
  return `preview?${new URLSearchParams({ [kind]: name, budget: byId(`budget${side}`).value, at: byId("at").value })}`;
}

/** The chosen strategy or preset; a window of tokens has half of the budget, as every other one by default. */
function chosen(side) {
  const [kind, name] = byId(`choice${side}`).value.split(":");
  return [kind, name === "tokens" ? `tokens:${Math.max(1, Math.round(byId(`budget${side}`).value / 2))}` : name];
}

/** Shows a first figure at once, then the exact ones; a change or Cancel ends the work. */
async function update(side) {
  const path = address(side);
  byId(`about${side}`).textContent = `${byId(`choice${side}`).selectedOptions[0].dataset.about}.`;
  running[side - 1]?.abort();
  found[side - 1] = null;
  if (!known.has(path)) {
    const stop = new AbortController();
    running[side - 1] = stop;
    byId(`figures${side}`).setAttribute("aria-busy", "true");
    const timer = progress(side, stop);
    try {
      const first = read(`${path}&quick=1`, { signal: stop.signal }).then((one) => { if (!found[side - 1] && one.tokens_before) draw(side, one); });
      const exact = read(path, { signal: stop.signal });
      await Promise.allSettled([first]);
      known.set(path, await exact);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      byId(`page${side}`).textContent = problem.message;
      figures(byId(`figures${side}`), []);
      return;
    } finally {
      clearInterval(timer);
      if (running[side - 1] === stop) {
        show(byId(`progress${side}`), stop.signal.aborted ? "Cancelled: change something to compute again." : null);
        byId(`figures${side}`).removeAttribute("aria-busy");
      }
    }
  }
  if (path !== address(side)) return;
  found[side - 1] = known.get(path);
  draw(side, known.get(path));
  compare();
}

function progress(side, stop) {
  const began = Date.now();
  const seconds = el("span", {}, "Computing the exact figures…");
  show(byId(`progress${side}`), el("progress", { "aria-label": "Computing" }), " ", seconds, " ", el("button", { type: "button", onclick: () => stop.abort() }, "Cancel"));
  return setInterval(() => { seconds.textContent = `Computing the exact figures… ${Math.round((Date.now() - began) / 1000)} s`; }, 1000);
}

function draw(side, one) {
  const pairs = [
    ["outcome", one.quick ? "first figures" : one.outcome.replaceAll("_", " ")],
    ["tokens", `${short(one.tokens_before)} → ${one.quick ? "at most " : ""}${short(one.tokens_after)}`],
    ["messages kept", full(one.kept)],
    ["archived", full(one.archived)],
  ];
  if (!one.quick) pairs.push(["shortened", full(one.edited)]);
  if (one.cost) {
    const after = one.cost.pays_after;
    pairs.push(["written to the cache again", short(one.cost.rewritten ?? 0)]);
    pairs.push(["pays for itself", after === null || after === undefined ? "never" : `after ${calls(after)}`]);
  }
  figures(byId(`figures${side}`), pairs);
  const notes = [one.fallback ? `Without a model: ${one.fallback} instead.\n\n` : "", one.why ? `${one.why}\n\n` : ""];
  byId(`page${side}`).textContent = one.quick ? "" : notes.join("") + (one.page || "No notes: what is archived is only in the log.");
  if (side === 1 && byId("commit")) {
    const fits = one.outcome === "compacted";
    byId("commit").querySelector("button").disabled = one.quick || !fits;
    byId("refused").textContent = one.quick || fits ? "" : `Cannot be committed: ${one.why || one.outcome.replaceAll("_", " ")}.`;
  }
}

/** What the second loses against the first. */
function compare() {
  const [first, second] = found;
  show(byId("lost"));
  if (!first || !second) return;
  const own = new Set((second.page ?? "").split("\n").map((line) => line.trim()));
  const lost = (first.page ?? "").split("\n").filter((line) => line.trim() && !own.has(line.trim()));
  const more = second.archived - first.archived;
  show(
    byId("lost"),
    el("p", {}, `Against A, B archives ${full(Math.abs(more))} messages ${more < 0 ? "less" : "more"}, and ${full(lost.length)} of the lines in A's notes are not in B's.`),
    lost.length ? folded("Those lines", () => el("pre", {}, lost.join("\n"))) : null,
  );
}

let waiting = 0;
function changed(sides) {
  for (const name of NAMES) remember(name, byId(name).value);
  for (const side of sides) found[side - 1] = null;
  if (sides.includes(1) && byId("commit")) byId("commit").querySelector("button").disabled = true;
  clearTimeout(waiting);
  waiting = setTimeout(() => sides.forEach((side) => quietly(update)(side)), 250);
}

for (const name of NAMES) byId(name).addEventListener("input", () => changed(/[12]$/.test(name) ? [Number(name.at(-1))] : [1, 2]));
byId("commit")?.addEventListener("submit", quietly(async (event) => {
  event.preventDefault();
  const [kind, name] = chosen(1);
  const [plan] = found;
  if (!plan || plan.outcome !== "compacted") return;
  const agreed = await ask({
    title: `Compact now by ${name}`,
    facts: [["tokens", `${full(plan.tokens_before)} → ${full(plan.tokens_after)}`], ["messages archived", full(plan.archived)], ["their lines", full(plan.lines ?? 0)]],
    notes: [`${full((plan.page ?? "").split("\n").filter(Boolean).length)} lines of notes stand in for them. The log keeps everything: Undo brings it back.`],
  });
  if (!agreed) return;
  const details = { budget: Number(byId("budget1").value), instructions: byId("instructions").value || null, [kind]: name };
  const done = await act("compact", details);
  if (done?.outcome === "compacted") location.href = sessionPath;
}));
document.addEventListener("moved", () => { known.clear(); changed([1, 2]); });
bindKeys({});
quietly(update)(1);
quietly(update)(2);
