// All sessions: those first that will overflow first; filtered and sorted here, in the address.

import { bindKeys, linkKeys } from "./keys.js";
import { ago, byId, chip, el, full, gauge, money, quietly, read, remember, short, show, table } from "./page.js";

const MAX_ROWS = 60;
const MAX_PRICED = 5000;
const MAX_READ = 1000;
const sorts = {
  next: ["overflows first", (a, b) => b.fullness - a.fullness],
  newest: ["last used", (a, b) => b.last_used.localeCompare(a.last_used)],
  size: ["largest", (a, b) => (b.size?.tokens ?? 0) - (a.size?.tokens ?? 0)],
  compactions: ["most compacted", (a, b) => (b.size?.round ?? 0) - (a.size?.round ?? 0)],
};
const states = { over: "over", soon: "compact soon", fine: "fine", unreadable: "unreadable" };
const FIELDS = ["tool", "model", "folder", "owner"];
const chosen = { sort: "next", state: "", find: "", tool: "", model: "", folder: "", owner: "", ...Object.fromEntries(new URLSearchParams(location.search)) };
const prices = new Map();
let all = [];
let count = 0;
let rows = MAX_ROWS;
let most = MAX_READ;

async function start() {
  do {
    const found = await read(`/api/sessions?from=${all.length}`);
    if (!found.sessions.length) break;
    all.push(...found.sessions);
    count = found.count;
    draw();
  } while (all.length < Math.min(count, most));
  draw();
  byId("sessions").removeAttribute("aria-busy");
}

function draw() {
  const of = (state) => all.filter((one) => one.state === state).length;
  const reading = all.length < count ? ` (${full(all.length)} of ${full(count)} read)` : "";
  const parts = Object.entries(states).filter(([state]) => of(state)).map(([state, name]) => `${full(of(state))} ${name}`);
  byId("state").textContent = all.length
    ? `${full(count)} ${count === 1 ? "session" : "sessions"}${reading}: ${parts.join(", ")}`
    : "This store has no sessions yet: import some with holdfast import, or chat.";
  show(byId("filters"), all.length > 1 ? controls(of) : null);
  const words = chosen.find.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((one) => (!chosen.state || one.state === chosen.state)
    && FIELDS.every((name) => !chosen[name] || one[name] === chosen[name])
    && words.every((word) => `${one.title} ${one.folder} ${one.id}`.toLowerCase().includes(word)));
  found.sort((sorts[chosen.sort] ?? sorts.next)[1]);
  const ordered = chosen.sort === "newest" ? withForks(found) : found;
  show(
    byId("sessions"),
    ordered.length ? list(ordered.slice(0, rows)) : all.length ? el("p", { class: "quiet" }, "None of them matches.") : null,
    all.length < count && all.length >= most ? el("p", { class: "more" }, el("button", { type: "button", onclick: () => { most += MAX_READ; quietly(start)(); } },
      `Read older sessions: ${full(count - all.length)} are left`)) : null,
    ordered.length > rows ? el("p", { class: "more" }, el("button", { type: "button", onclick: () => { rows += MAX_ROWS; draw(); } },
      `Show more: ${full(ordered.length - rows)} are below`)) : null,
  );
  quietly(price)();
}

function choose(name, value) {
  chosen[name] = value;
  remember(name, value || null);
  draw();
}

function controls(of) {
  const states_ = Object.entries(states).filter(([state]) => of(state)).map(([state, name]) => el("button", {
    type: "button",
    "aria-pressed": String(chosen.state === state),
    class: `state ${state}`,
    onclick: () => choose("state", chosen.state === state ? "" : state),
  }, `${name} ${full(of(state))}`));
  const focus = document.activeElement?.name;
  const selects = [picker("sort", Object.entries(sorts).map(([key, [name]]) => [key, name]))];
  for (const name of FIELDS) {
    const values = [...new Set(all.map((one) => one[name]).filter(Boolean))].sort();
    if (values.length > 1) selects.push(picker(name, [["", `any ${name}`], ...values.map((value) => [value, value])]));
  }
  if (focus) queueMicrotask(() => document.querySelector(`#filters [name="${focus}"]`)?.focus());
  return [...states_, ...selects];
}

function picker(name, values) {
  return el("select", { name, "aria-label": name === "sort" ? "Order" : name, onchange: (event) => choose(name, event.target.value) },
    values.map(([value, text]) => el("option", { value, selected: chosen[name] === value }, text)));
}

/** Forks below the session that they come from. */
function withForks(found) {
  const ids = new Set(found.map((one) => one.id));
  const below = new Map();
  for (const one of found) if (ids.has(one.parent)) below.set(one.parent, [...(below.get(one.parent) ?? []), one]);
  const family = (one) => [one, ...(below.get(one.id) ?? []).flatMap(family)];
  return found.filter((one) => !ids.has(one.parent)).flatMap(family);
}

function list(shown) {
  return table(
    ["State", ["Session", "main"], ["Context", "wide"], ["Tokens", "n"], ["Compactions", "n wide"], ["Events", "n wide"], ["Cost", "n wide"], ["Last used", "wide"]],
    shown.map((one) => [
      chip(one),
      [el("a", { href: one.path, title: one.title }, one.title), el("div", { class: "quiet about" }, about(one))],
      gauge(one),
      one.size ? [short(one.size.tokens), el("div", { class: "quiet" }, one.size.window ? `of ${short(one.size.window)}` : "")] : "–",
      full(one.size?.round ?? 0),
      full(one.version),
      el("span", { class: "price", "data-path": one.path, "data-events": one.version }, prices.get(one.path) ?? ""),
      el("time", { datetime: one.last_used, title: one.last_used }, ago(one.last_used)),
    ]),
    "listing",
  );
}

const about = (one) => [one.parent ? `fork from #${one.parent_seq}` : "", one.compacting ? "being compacted now" : "", one.folder, one.tool, one.model, one.owner]
  .filter(Boolean).join(" · ");

/** Reads the cost of the sessions that are shown, which takes reading their logs. */
let pricing = false;
async function price() {
  if (pricing) return;
  pricing = true;
  for (let cell; (cell = document.querySelector(".price:empty:not([data-read])"));) {
    cell.dataset.read = "1";
    const { path, events } = cell.dataset;
    if (Number(events) > MAX_PRICED || prices.has(path)) continue;
    const found = await read(`/api${path}/price`).catch(() => null);
    prices.set(path, found?.count ? money(found.price) : "–");
    const now = document.querySelector(`.price[data-path="${CSS.escape(path)}"]`);
    if (now) now.textContent = prices.get(path);
  }
  pricing = false;
}

byId("find").addEventListener("input", (event) => choose("find", event.target.value));
byId("find").value = chosen.find;
bindKeys(linkKeys("td:nth-child(2) a"));
quietly(start)();
