// What the model saw at an event: messages, wire JSON, and the difference to another event.

import { bindKeys } from "./keys.js";
import { diffLines } from "./line_diff.js";
import { eventCells, VirtualList } from "./list.js";
import { body, byId, el, full, longText, quietly, read, sessionPath, show } from "./page.js";

const seq = Number(body.at);
const other = Number(body.vs || 0);
let list = null;
let wanted = null;

async function start() {
  const stop = new AbortController();
  const began = Date.now();
  const cancel = el("button", { type: "button", class: "act", onclick: () => stop.abort() }, "Cancel");
  const waiting = el("span", {}, "");
  let known = false;
  read(`at/${seq}?quick=1`).then((first) => {
    if (!known && first.tokens) show(byId("state"), `After #${seq} the model saw about ${full(first.count)} messages, ${full(first.tokens)} tokens. `, waiting, cancel);
  }, () => null);
  const timer = setInterval(() => { waiting.textContent = `Reading them… ${Math.round((Date.now() - began) / 1000)} s`; }, 1000);
  let found;
  try {
    found = await read(`at/${seq}${other ? `?vs=${other}` : ""}`, { signal: stop.signal });
  } catch (problem) {
    known = true;
    show(byId("state"), problem.name === "AbortError" ? "Cancelled: reload the page to read it." : problem.message);
    return;
  } finally {
    clearInterval(timer);
    known = true;
  }
  show(
    byId("state"),
    "After ",
    el("strong", {}, `#${seq}`),
    ` the model saw ${full(found.count)} messages, `,
    el("strong", {}, full(found.tokens)),
    ` tokens${found.known ? "" : " (estimated)"}`,
  );
  list = new VirtualList(byId("list"), {
    count: found.count,
    load: async (first, last) => {
      if (last < found.messages.length) return found.messages.slice(first, last + 1);
      return (await read(`at/${seq}?from=${first}`)).messages;
    },
    draw: ([index, role, line, tokens, number, tool]) => ({ kind: "", cells: eventCells(number || index, `${role} ${tool}`, line, tokens) }),
    select: quietly((index) => message(index)),
  });
  bindKeys({ ...list.keys, "[": () => go(seq - 1), "]": () => go(seq + 1) });
  if (found.diff) difference(found.diff);
  else if (found.count) list.select(found.count - 1);
}

async function message(index) {
  byId("wire").setAttribute("aria-pressed", "false");
  wanted = index;
  const found = await read(`at/${seq}/message/${index}`);
  if (wanted !== index) return;
  show(
    byId("detail"),
    el("h2", {}, `Message ${full(index + 1)}`),
    el("p", { class: "quiet" }, found.number ? el("a", { href: `${sessionPath}?e=${found.number}` }, `from #${found.number}`) : ""),
    longText(found.text, found.next, (offset) => read(`at/${seq}/message/${index}?offset=${offset}`)),
  );
}

function difference(parts) {
  show(
    byId("detail"),
    el("h2", {}, `#${other} → #${seq}`),
    el("div", { class: "differences" }, parts.map((part) => {
      if (part.kind === "same") return el("p", { class: "quiet" }, `${full(part.count ?? 1)} equal`);
      return [
        el("h3", {}, `${part.kind}: ${part.role ?? ""} ${part.number ? `#${part.number}` : ""}`),
        diffLines((part.lines ?? []).map((line) => [line[0], line.slice(1)])),
      ];
    }).flat()),
  );
}

byId("wire").addEventListener("click", quietly(async () => {
  byId("wire").setAttribute("aria-pressed", "true");
  wanted = "wire";
  const found = await read(`at/${seq}/wire`);
  if (wanted !== "wire") return;
  show(
    byId("detail"),
    el("h2", {}, "Wire JSON"),
    el("p", { class: "quiet" }, `${full(found.length)} characters, exactly as sent`),
    longText(found.text, found.next, (offset) => read(`at/${seq}/wire?offset=${offset}`)),
  );
}));

function go(to, vs = byId("vs").value) {
  if (to >= 1) location.href = `${sessionPath}/at/${to}${vs ? `?vs=${vs}` : ""}`;
}
byId("travel").addEventListener("submit", (event) => {
  event.preventDefault();
  go(Number(byId("at").value));
});
quietly(start)();
