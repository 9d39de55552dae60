// The page of a session: the strip of its size, its events, and one of them in detail.

import { drawChart } from "./chart.js";
import { bindKeys } from "./keys.js";
import { eventCells, VirtualList } from "./list.js";
import { addPauseButton, follow } from "./live.js";
import { act, body, byId, el, full, longText, quietly, read, remember, say, sessionPath, short, show, when } from "./page.js";

const marks = new Set(["compaction", "undo", "pin", "redaction", "attempt"]);
let compactions = [];
let chart = null;

const list = new VirtualList(byId("list"), {
  count: Number(body.version),
  load: async (first, last) => {
    const found = [];
    for (const row of (await read(`rows?from=${first + 1}&to=${last + 1}`)).rows) found[row[0] - 1 - first] = row;
    return found;
  },
  draw: ([seq, kind, role, line, tokens, , archived, lane]) => ({
    kind: marks.has(kind) ? "mark" : archived ? "archived" : "",
    cells: eventCells(seq, lane ? `${role} ${lane}` : role, line, tokens),
  }),
  select: quietly((index) => detail(index + 1)),
});

let wanted = 0;
async function detail(seq) {
  wanted = seq;
  remember("e", seq);
  const event = await read(`event/${seq}`);
  if (wanted !== seq) return;
  const state = event.archived ? "archived" : event.kind === "message" ? "in the context" : event.kind;
  const facts = [event.role, state, event.tokens ? `${full(event.tokens)} tokens` : "", event.time ? when(event.time) : ""];
  const acts = [el("a", { href: `${sessionPath}/at/${seq}` }, "What the model saw")];
  if (event.kind === "compaction") acts.unshift(el("a", { href: `${sessionPath}/c/${seq}` }, "What was lost, and why"));
  if (!body.readonly) {
    if (event.kind === "message") acts.push(button(event.pinned ? "Unpin" : "Pin", "pin", event.id, { pinned: !event.pinned }));
    if (event.archived) acts.push(button("Restore", "restore", event.id));
    if (!event.lane) acts.push(button("Fork here", "fork", event.id));
  }
  show(
    byId("detail"),
    el("h2", {}, `#${seq}`),
    el("p", { class: "quiet" }, facts.filter(Boolean).join(" · ")),
    el("div", { class: "acts" }, acts),
    longText(event.text, event.next, (offset) => read(`event/${seq}?offset=${offset}`)),
  );
  byId("detail").scrollTop = 0;
}

function button(text, action, event, more = {}) {
  return el("button", {
    type: "button",
    onclick: async () => {
      const done = await act(action, { event, ...more });
      if (done?.path) location.href = done.path;
      else if (done) {
        await refresh(false);
        await detail(wanted);
      }
    },
  }, text);
}

async function undo() {
  if (body.readonly || !byId("undo")) return;
  if (await act("undo")) await refresh();
}

/** Shows what has changed; who looks at the newest event follows it, others stay at theirs. */
async function refresh(follows = list.selected === list.count - 1) {
  const now = await read(`/api${sessionPath}`);
  const grown = now.version !== list.count;
  body.version = now.version;
  byId("state").querySelector("strong").textContent = short(now.tokens);
  byId("state").lastChild.textContent = `${now.window ? ` of ${short(now.window)}` : " tokens"}, ${times(now.rounds)}`
    + (now.next_at ? `, next at about ${short(now.next_at)}` : "") + (now.compacting ? ", being compacted now" : "");
  const whole = Math.max(now.window || now.next_at || 200000, now.tokens, 1);
  document.querySelector(".gauge .used").setAttribute("width", `${(100 * now.tokens / whole).toFixed(2)}%`);
  last(now.last);
  list.forget();
  list.resize(now.version);
  if (grown && follows) list.select(now.version - 1);
  await strip();
}

const times = (count) => ({ 0: "never compacted", 1: "compacted once", 2: "compacted twice" })[count] ?? `compacted ${full(count)} times`;

function last(compaction) {
  if (!compaction) return show(byId("last"), document.createTextNode("Nothing is archived: the model sees every message."));
  const path = `${sessionPath}/c/${compaction.seq}`;
  const archived = compaction.archived === 1 ? "1 message" : `${full(compaction.archived)} messages`;
  return show(
    byId("last"),
    "Compaction ",
    el("a", { href: path }, `#${compaction.seq}`),
    ` by ${compaction.strategy || "a strategy"} archived ${archived}: ${short(compaction.before)} → ${short(compaction.after)}. `,
    el("a", { href: path, class: "act" }, "What was lost"),
    body.readonly ? null : el("button", { type: "button", id: "undo", class: "act", onclick: undo }, "Undo"),
  );
}

async function strip() {
  const { seqs, sizes, reported, compactions: found } = await read("sizes");
  compactions = found.map(([seq]) => seq);
  if (!seqs.length) return;
  if (chart) chart.update([seqs, sizes, reported]);
  else chart = drawChart(byId("strip"), [seqs, sizes, reported], [{ color: "--accent", fill: true }, { color: "--soft", gaps: true }], { choose: (seq) => list.select(seq - 1) });
}

function jump(direction) {
  const here = list.selected + 1;
  const next = direction < 0 ? compactions.filter((seq) => seq < here).pop() : compactions.find((seq) => seq > here);
  if (next) list.select(next - 1);
  else say(direction < 0 ? "There is no earlier compaction." : "There is no later compaction.");
}

byId("undo")?.addEventListener("click", undo);
byId("search").form.addEventListener("submit", (event) => {
  const number = /^#?([\d,]+)$/.exec(byId("search").value.trim());
  if (!number) return;
  event.preventDefault();
  byId("search").value = "";
  byId("search").blur();
  list.select(Number(number[1].replaceAll(",", "")) - 1);
});
bindKeys({ ...list.keys, u: undo, "[": () => jump(-1), "]": () => jump(1) });
const asked = Number(new URLSearchParams(location.search).get("e"));
list.select((asked || list.count) - 1);
quietly(strip)();
const pause = follow(quietly((version) => (version !== Number(body.version) ? refresh() : null)));
addPauseButton(pause);
