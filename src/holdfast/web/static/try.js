// Two ways to compact at the same moment, side by side; nothing is written until "Compact now".

import { bindKeys } from "./keys.js";
import { act, byId, calls, figures, full, quietly, read, remember, sessionPath, short } from "./page.js";

const known = new Map();
const running = [null, null];
let waiting = 0;

for (const [name, value] of new URLSearchParams(location.search)) if (byId(name)) byId(name).value = value;

function address(side) {
  const [kind, name] = chosen(side);
  return `preview?${new URLSearchParams({ [kind]: name, budget: byId("budget").value, at: byId("at").value })}`;
}

/** The chosen way; a window of tokens has half of the budget, as every other way by default. */
function chosen(side) {
  const [kind, name] = byId(`choice${side}`).value.split(":");
  return [kind, name === "tokens" ? `tokens:${Math.max(1, Math.round(byId("budget").value / 2))}` : name];
}

async function update(side) {
  const path = address(side);
  running[side - 1]?.abort();
  if (!known.has(path)) {
    const stop = new AbortController();
    running[side - 1] = stop;
    byId(`figures${side}`).setAttribute("aria-busy", "true");
    try {
      known.set(path, await read(path, { signal: stop.signal }));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      byId(`page${side}`).textContent = problem.message;
      figures(byId(`figures${side}`), []);
      return;
    } finally {
      byId(`figures${side}`).removeAttribute("aria-busy");
    }
  }
  if (path === address(side)) draw(side, known.get(path));
}

function draw(side, found) {
  const pairs = [
    ["outcome", found.outcome.replaceAll("_", " ")],
    ["tokens", `${short(found.tokens_before)} → ${short(found.tokens_after)}`],
    ["kept", full(found.kept)],
    ["archived", full(found.archived)],
    ["shortened", full(found.edited)],
  ];
  if (found.cost) {
    const after = found.cost.pays_after;
    pairs.push(["written to the cache again", short(found.cost.rewritten ?? 0)]);
    pairs.push(["pays for itself", after === null || after === undefined ? "never" : `after ${calls(after)}`]);
  }
  figures(byId(`figures${side}`), pairs);
  const notes = [found.fallback ? `Without a model: ${found.fallback} instead.\n\n` : "", found.why ? `${found.why}\n\n` : ""];
  byId(`page${side}`).textContent = notes.join("") + (found.page || "No notes: what is archived is only in the log.");
}

function changed() {
  byId("shown").textContent = short(Number(byId("budget").value));
  for (const name of ["budget", "at", "choice1", "choice2"]) remember(name, byId(name).value);
  clearTimeout(waiting);
  waiting = setTimeout(() => { quietly(update)(1); quietly(update)(2); }, 200);
}

for (const name of ["budget", "at", "choice1", "choice2"]) byId(name).addEventListener("input", changed);
byId("commit")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const [kind, name] = chosen(1);
  const strategy = kind === "strategy" ? name : null;
  const details = { strategy, budget: Number(byId("budget").value), instructions: byId("instructions").value || null };
  const done = await act("compact", details);
  if (done?.outcome === "compacted") location.href = sessionPath;
});
bindKeys({});
changed();
