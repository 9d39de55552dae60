// A compaction: what was there, the notes that are shown instead, and why each line is among them.

import { bindKeys } from "./keys.js";
import { eventCells, VirtualList } from "./list.js";
import { content, toolOf } from "./content.js";
import { body, byId, el, figures, full, quietly, read, remember, say, sessionPath, short, show } from "./page.js";

const seq = Number(body.compaction);
const words = { kept: "kept", shown: "quoted", edited: "shortened", archived: "archived", replaced: "replaced" };
const signs = { kept: "✓", shown: "“", edited: "~", archived: "–", replaced: "–" };
let found = null;
let lines = [];
let stored = [];
let cited = 0;
let before = null;
let notes = null;
let active = null;
let from = new Set();
let wanted = null;

async function start() {
  found = await read(`c/${seq}`);
  lines = stored = found.page.lines.filter((one) => one.text.trim());
  const count = (fate) => found.fates.filter((one) => one[1] === fate).length;
  show(
    byId("state"),
    "Compaction ",
    el("strong", {}, `#${seq}`),
    ": ",
    el("strong", {}, `${short(found.before)} → ${short(found.after)}`),
    ` tokens; ${full(count("archived"))} archived, ${full(count("kept"))} kept, ${full(count("edited"))} shortened`,
    el("a", { href: `${sessionPath}?e=${seq}`, class: "act" }, "Undo or redo it"),
  );
  if (found.cut) cutter();
  byId("verdict").textContent = verdict();
  const events = new Map();
  before = new VirtualList(byId("before"), {
    count: found.fates.length,
    load: async (first, last) => {
      const fates = found.fates.slice(first, last + 1);
      const missing = fates.map((one) => one[0]).filter((number) => !events.has(number));
      for (let at = 0; at < missing.length;) {
        const { rows } = await read(`rows?from=${missing[at]}&to=${missing[missing.length - 1]}`);
        for (const row of rows) events.set(row[0], row);
        if (!rows.length) break;
        const reached = rows[rows.length - 1][0];
        while (at < missing.length && missing[at] <= reached) at++;
      }
      return fates;
    },
    draw: ([number, fate, , tokens]) => ({
      kind: `${fate === "archived" || fate === "replaced" ? "archived" : ""} ${from.has(number) ? "from" : ""}`,
      cells: eventCells(number, `${signs[fate]} ${events.get(number)?.[9] || events.get(number)?.[2] || ""}`, events.get(number)?.[3] ?? "", tokens),
    }),
    select: quietly((index) => { active = before; return event(index); }),
  });
  notes = new VirtualList(byId("notes"), {
    count: lines.length,
    height: 20,
    load: async (first, last) => lines.slice(first, last + 1),
    draw: (line) => ({
      kind: `line ${line.text.startsWith("#") ? "heading" : ""} ${line.crossing ?? ""} ${(line.sources ?? [line.source]).includes(cited) ? "from" : ""}`,
      cells: [el("span", {}, line.text), el("span", { class: "n" }, line.rank ? `${line.rank}.` : "")],
    }),
    select: quietly((index) => { active = notes; return line(index); }),
  });
  active = notes.count ? notes : before;
  for (const list of [before, notes]) list.element.addEventListener("focus", () => { active = list; });
  const moves = Object.keys(before.keys).map((key) => [key, () => active.keys[key]()]);
  bindKeys({ ...Object.fromEntries(moves), "[": quietly(() => jump(-1)), "]": quietly(() => jump(1)) });
  const asked = new URLSearchParams(location.search);
  if (asked.get("line")) notes.select(Number(asked.get("line")));
  else if (asked.get("e")) choose(Number(asked.get("e")));
  else explain();
}

function verdict() {
  const hidden = found.count - found.fates.length;
  return `${[agreement(), ...found.remarks].join(" ")}${hidden ? ` The ${full(hidden)} oldest of the events before it are not listed.` : ""}`;
}

function agreement() {
  if (found.agrees) return "Computed again from the log: equal to what is stored, byte for byte.";
  return found.agrees === null || found.agrees === undefined
    ? `Not computed again: ${found.why}. Sources are those that the notes cite; there are no scores.`
    : `Not equal to what is stored: ${found.why}.`;
}

async function jump(direction) {
  const all = (await read("sizes")).compactions.map(([number]) => number);
  const next = direction < 0 ? all.filter((number) => number < seq).pop() : all.find((number) => number > seq);
  if (next) location.href = `${sessionPath}/c/${next}`;
  else say(direction < 0 ? "There is no earlier compaction." : "There is no later compaction.");
}

/** The parameters, while nothing is selected. */
function explain() {
  const made = found.parameters;
  const page = found.page;
  const pairs = made ? [
    ["strategy", `${made.strategy.kind}${made.strategy.max_tokens ? ` ${full(made.strategy.max_tokens)}` : ""}`],
    ["trigger", made.trigger?.kind ?? "over the budget"],
    ["budget", made.budget ? full(made.budget) : "none"],
    ["target", made.target ? full(made.target) : "half of the context"],
    ["model", made.model ?? "unknown"],
    ["weights", made.weights ?? "none"],
  ] : [];
  if (page.candidates) pairs.push(["lines taken", `${full(page.taken)} of ${full(page.candidates)}`]);
  const list = el("dl", { class: "figures plain" });
  figures(list, pairs);
  const nearly = (page.left_out ?? []).filter((one) => one.verdict !== "adds nothing").slice(0, 12);
  show(
    byId("detail"),
    pairs.length ? [el("h2", {}, "How it was made"), list] : null,
    el("p", { class: "quiet" }, "Choose a line or an event to see why it is there."),
    nearly.length ? [
      el("h2", { class: "next" }, "Nearly kept"),
      el("ul", { class: "nearly" }, nearly.map((one) => el("li", {},
        el("a", { href: `${sessionPath}/c/${seq}?e=${one.source}` }, `#${one.source}`), " ", el("code", {}, one.text)))),
    ] : null,
  );
}

function mark(sources) {
  from = new Set(sources);
  before.forget();
}

function choose(number) {
  const index = found.fates.findIndex((one) => one[0] === number);
  if (index >= 0) before.select(index);
}

/** Marks the lines of an event among the notes, and brings the first into view. */
function cite(number) {
  cited = number;
  const first = lines.findIndex((one) => (one.sources ?? [one.source]).includes(number));
  if (first >= 0) notes.element.scrollTop = Math.max(0, first * notes.height - notes.element.clientHeight / 2);
  notes.forget();
}

/** A slider of the room for ranked lines: those that would come in or fall out are marked in the notes. */
function cutter() {
  const ranked = stored.filter((one) => one.rank);
  const out = (found.page.left_out ?? []).filter((one) => one.verdict !== "adds nothing");
  const sized = [...ranked, ...out].sort((a, b) => a.rank - b.rank);
  const room = ranked.reduce((sum, one) => sum + one.text.length, 0);
  const output = el("output", {}, "as it was");
  const slider = el("input", { type: "range", min: 0, max: 200, value: 100, step: 5, "aria-label": "Room for ranked lines in percent" });
  const set = (percent) => {
    let left = (room * percent) / 100;
    const taken = new Set();
    for (const one of percent === 100 ? ranked : sized) if (one.text.length <= left || percent === 100) { taken.add(one); left -= one.text.length; }
    const lost = ranked.filter((one) => !taken.has(one)).length;
    const more = out.filter((one) => taken.has(one)).map((one) => ({ ...one, crossing: "comes" }));
    lines = percent === 100 ? stored : [
      ...stored.map((one) => (one.rank && !taken.has(one) ? { ...one, crossing: "goes" } : one)),
      ...(more.length ? [{ text: "## Would come in" }] : []), ...more,
    ];
    output.textContent = percent === 100 ? "as it was" : `${percent} % of the room: ${full(lost)} lines fall out, ${full(more.length)} come in`;
    notes.selected = -1;
    notes.forget();
    notes.resize(lines.length);
  };
  slider.addEventListener("input", () => set(Number(slider.value)));
  const half = el("button", { type: "button", onclick: () => { slider.value = 50; set(50); } }, "Half");
  show(byId("cut"), el("label", {}, "Room for lines ", slider), half, output);
}

/** Why a line is there, in words and as a bar: the mark is the last line that was taken. */
function reason(one) {
  if (!one.rank) return el("p", {}, one.rule ? `Here by its section: ${one.rule}.` : "Part of the summary.");
  const { last_score: last, candidates } = found.page;
  const [number, tool] = one.named_in ?? [];
  const needs = number ? ["Kept because ", el("a", { href: `${sessionPath}?e=${number}` }, `#${number}`), ` (${tool}) names `, el("code", {}, one.names[0]), ". "]
    : one.names?.length ? ["Kept for the name ", el("code", {}, one.names[0]), ". "] : [];
  return [
    el("p", {}, needs, place(one)),
    el("meter", { min: 0, max: 2, value: Math.min(2, last ? one.score / last : 2), "aria-label": "Score against the last line that was taken" }),
    el("p", { class: "quiet" }, `Rank ${full(one.rank)} of ${full(candidates)} lines; half of the bar is what a line needed.`),
  ];
}

function place(one) {
  const gap = found.cut - one.rank;
  if (gap >= 0) return gap === 0 ? "It was the last line that fitted." : `It lies ${full(gap)} ${gap === 1 ? "place" : "places"} above the cut.`;
  if (one.verdict === "no room") return "It ranked high enough, but was longer than the room that was left.";
  return `It was dropped ${full(-gap)} ${gap === -1 ? "place" : "places"} below the cut.`;
}

async function line(index) {
  const one = lines[index];
  wanted = one;
  remember("line", index);
  remember("e", null);
  const sources = one.sources ?? (one.source ? [one.source] : []);
  mark(sources);
  const first = found.fates.findIndex((fate) => fate[0] === sources[0]);
  if (first >= 0) before.element.scrollTop = Math.max(0, first * before.height - before.element.clientHeight / 2);
  show(
    byId("detail"),
    el("h2", {}, "This line"),
    el("pre", {}, one.text),
    reason(one),
    one.section ? el("p", { class: "quiet" }, `Section: ${one.section}`) : null,
    one.names?.length > 1 ? el("p", { class: "quiet" }, "Names in it, the most needed first: ", one.names.join(", ")) : null,
    sources.length ? el("p", { class: "acts" }, "From ", sources.slice(0, 20).map((source) => el("a", { href: `${sessionPath}?e=${source}` }, `#${source}`))) : null,
  );
}

async function event(index) {
  const one = found.fates[index];
  const [number, fate, rule, tokens, lines] = one;
  wanted = one;
  remember("e", number);
  remember("line", null);
  const left = (found.page.left_out ?? []).filter((one) => one.source === number);
  const stays = (found.page.result_lines ?? []).filter((one) => one.sources[0] === number);
  cite(number);
  const detail = await read(`event/${number}`);
  if (wanted !== one) return;
  const list = el("dl", { class: "figures plain" });
  figures(list, [["tokens", full(tokens)], [fate === "edited" ? "lines kept" : "lines in the notes", full(lines ?? 0)]]);
  show(
    byId("detail"),
    el("h2", {}, `#${number} ${words[fate]}`),
    el("p", {}, `${fate === "archived" ? "Archived" : fate === "kept" ? "Kept" : "Shown differently"}: ${rule}.`),
    el("p", { class: "quiet" }, [detail.role, toolOf(detail)].filter(Boolean).join(" ")),
    list,
    stays.length ? [el("p", {}, "What is left of it:"), ranked(stays)] : null,
    left.length ? [el("p", {}, obstacle(left[0])), ranked(left)]
      : fate === "archived" && found.page.candidates ? el("p", { class: "quiet" }, "No other line of it was among the candidates.") : null,
    el("p", { class: "acts" }, el("a", { href: `${sessionPath}?e=${number}` }, "Open the event")),
    content(detail.parts ? detail : { ...detail, text: detail.text.slice(0, 4000), next: null }),
  );
}

function ranked(all) {
  return el("pre", {}, all.slice(0, 12).map((one) => `${one.rank ? `${one.rank}. ` : ""}${one.text}\n`).join(""));
}

function obstacle(best) {
  if (best.verdict === "adds nothing") return "Its best other line adds nothing: everything that it names is already there.";
  return place(best).replace("It ", "Its best other line ");
}

quietly(start)();
