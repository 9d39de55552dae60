// The page of a session: the curve of its size, its events, and one of them in detail.

import { sizeChart } from "./chart.js";
import { confirmed } from "./confirm.js";
import { content, toolOf } from "./content.js";
import { bindKeys } from "./keys.js";
import { eventCells, VirtualList } from "./list.js";
import { addPauseButton, follow } from "./live.js";
import { act, body, byId, chip, el, full, gauge, quietly, read, remember, say, sessionPath, show, when } from "./page.js";

const marks = new Set(["compaction", "undo", "pin", "redaction", "attempt", "policy"]);
let compactions = [];
let chart = null;
let shown = JSON.parse(body.overview);

const list = new VirtualList(byId("list"), {
  count: Number(body.version),
  load: async (first, last) => {
    const found = [];
    for (const row of (await read(`rows?from=${first + 1}&to=${last + 1}`)).rows) found[row[0] - 1 - first] = row;
    return found;
  },
  draw: ([seq, kind, role, line, tokens, , archived, lane, , tool]) => ({
    kind: marks.has(kind) ? "mark" : archived ? "archived" : "",
    cells: eventCells(seq, [role, tool, lane].filter(Boolean).join(" "), line, tokens),
  }),
  select: quietly((index) => detail(index + 1)),
});

let wanted = 0;
async function detail(seq) {
  wanted = seq;
  remember("e", seq);
  const event = await read(`event/${seq}`);
  if (wanted !== seq) return;
  const state = event.archived ? "archived: the model no longer sees it" : event.kind === "message" ? "in the context" : "";
  const facts = [event.role, toolOf(event), state, event.tokens ? `${full(event.tokens)} tokens` : "", event.time ? when(event.time) : ""];
  const acts = [el("a", { href: `${sessionPath}/at/${seq}` }, "What the model saw")];
  if (event.kind === "compaction") acts.unshift(el("a", { href: `${sessionPath}/c/${seq}` }, "What was lost, and why"));
  else if (event.archived && shown.last) acts.unshift(el("a", { href: `${sessionPath}/c/${shown.last.seq}?e=${seq}` }, "Why it is not there"));
  if (!body.readonly) {
    if (event.kind === "message") acts.push(button(event.pinned ? "Unpin" : "Pin", "pin", event, { pinned: !event.pinned }));
    if (event.archived) acts.push(button("Restore", "restore", event, {}, true));
    if (!event.lane) acts.push(button("Fork here", "fork", event, {}, true));
  }
  show(
    byId("detail"),
    el("h2", {}, `#${seq}`),
    el("p", { class: "quiet" }, facts.filter(Boolean).join(" · ")),
    el("div", { class: "acts" }, acts),
    content(event, (offset) => read(`event/${seq}?offset=${offset}`)),
  );
  byId("detail").scrollTop = 0;
}

function button(text, action, event, more = {}, asks = false) {
  return el("button", {
    type: "button",
    onclick: quietly(async () => {
      if (asks && !await confirmed(action, event.seq)) return;
      const done = await act(action, { event: event.id, ...more });
      if (done?.path) location.href = done.path;
      else if (done) {
        await refresh(false);
        await detail(wanted);
      }
    }),
  }, text);
}

/** Undoes the compaction in force, or redoes the one that was undone; asks first. */
async function step(action) {
  const subject = action === "undo" ? shown.last : shown.undone;
  if (body.readonly) return say("This server only reads.");
  if (!subject) return say(action === "undo" ? "There is no compaction to undo." : "There is nothing to redo.");
  if (!await confirmed(action)) return null;
  if (await act(action, { event: subject.id })) await refresh();
  return null;
}

/** Shows what has changed; who looks at the newest event follows it, others stay at theirs. */
async function refresh(follows = list.selected === list.count - 1) {
  shown = await read(`/api${sessionPath}`);
  const grown = shown.version !== list.count;
  body.version = shown.version;
  state();
  list.forget();
  list.resize(shown.version);
  if (grown && follows) list.select(shown.version - 1);
  await strip();
}

function state() {
  show(byId("state"), chip(shown), " ", shown.headline);
  show(byId("gauge"), gauge(shown));
  const { last, undone } = shown;
  const act = (text, action, name = {}) => (body.readonly ? null
    : el("button", { type: "button", class: "act", ...name, onclick: quietly(() => step(action)) }, text));
  show(
    byId("last"),
    last ? ["Compaction ", el("a", { href: `${sessionPath}/c/${last.seq}` }, `#${last.seq}`), ` ${shown.last_sentence} `,
      el("a", { href: `${sessionPath}/c/${last.seq}`, class: "act" }, "What was lost"), act("Undo", "undo", { id: "undo" })] : shown.last_sentence,
    undone ? [" Compaction ", el("a", { href: `${sessionPath}/c/${undone.seq}` }, `#${undone.seq}`), " is undone. ", act("Redo", "redo", { id: "redo" })] : null,
  );
}

async function strip() {
  const found = await read("sizes");
  compactions = found.compactions.map(([seq]) => seq);
  if (!found.seqs.length) return;
  if (chart) chart.update(found);
  else chart = sizeChart(byId("strip"), found, (seq) => list.select(seq - 1));
}

function jump(direction) {
  const here = list.selected + 1;
  const next = direction < 0 ? compactions.filter((seq) => seq < here).pop() : compactions.find((seq) => seq > here);
  if (next) list.select(next - 1);
  else say(direction < 0 ? "There is no earlier compaction." : "There is no later compaction.");
}

byId("search").form.addEventListener("submit", (event) => {
  const number = /^#?([\d,]+)$/.exec(byId("search").value.trim());
  if (!number) return;
  event.preventDefault();
  byId("search").value = "";
  byId("search").blur();
  list.select(Number(number[1].replaceAll(",", "")) - 1);
});
bindKeys({ ...list.keys, u: quietly(() => step("undo")), r: quietly(() => step("redo")), "[": () => jump(-1), "]": () => jump(1) });
document.addEventListener("moved", quietly(() => refresh(false)));
const asked = Number(new URLSearchParams(location.search).get("e"));
list.select((asked || list.count) - 1);
state();
quietly(strip)();
const pause = follow(quietly(async (version) => {
  if (version === Number(body.version)) return;
  const before = shown.last?.seq;
  await refresh();
  if (shown.last?.seq !== before) say(shown.last ? `Somebody else compacted this session, or redid a compaction: #${shown.last.seq} is in force.` : "Somebody else undid the compaction.");
}));
addPauseButton(pause);
