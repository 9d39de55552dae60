// What every page shares: elements built from text, requests, figures, and the status line.

export const body = document.body.dataset;
export const sessionPath = body.session ? `/s/${body.session}` : "";

/** Builds an element. Children are nodes or text; text never becomes markup. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export const byId = (id) => document.getElementById(id);

export function show(node, ...children) {
  node.replaceChildren(...children.flat().filter(Boolean));
}

/** Reads JSON of this session; a problem is shown and thrown. */
export async function read(path, options) {
  const reply = await fetch(path.startsWith("/") ? path : `/api${sessionPath}/${path}`, options);
  const data = await reply.json();
  if (!reply.ok) throw Object.assign(new Error(data.error), { status: reply.status });
  return data;
}

/** Sends an action with the version that this page has seen. */
export async function act(name, details = {}) {
  try {
    const data = await read(`do/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-holdfast": "1" },
      body: JSON.stringify({ version: Number(body.version), ...details }),
    });
    say(data.message);
    return data;
  } catch (problem) {
    if (problem.status === 409) document.dispatchEvent(new CustomEvent("moved"));
    say(problem.message);
    return null;
  }
}

let fading = 0;
export function say(text) {
  const status = byId("status");
  status.textContent = text;
  clearTimeout(fading);
  fading = setTimeout(() => { status.textContent = ""; }, 6000);
}

export const full = (count) => Number(count).toLocaleString("en-US");
export function short(count) {
  if (count < 1000) return String(Math.round(count));
  if (count < 999500) return count < 9950 ? `${(count / 1000).toFixed(1)}k` : `${Math.round(count / 1000)}k`;
  return `${(count / 1e6).toFixed(1)}M`;
}
export const calls = (count) => (count === 1 ? "1 call" : `${full(count)} calls`);
export const when = (time) => time.slice(0, 16).replace("T", " ");
export const money = (price) => (price === null || price === undefined ? "unknown" : `$${price.toFixed(price < 0.005 && price > 0 ? 4 : 2)}`);

const STATES = { fine: "fine", soon: "compacts soon", over: "over", unreadable: "unreadable" };
/** The state of a session as a word. */
export const chip = (one) => el("span", { class: `state ${one.state}` }, STATES[one.state]);

/** A bar of the window: its used part, and a mark where the next compaction is due. */
export function gauge(one) {
  const draw = (name, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const label = one.headline || "unknown";
  const bar = draw("svg", { class: `gauge ${one.state}`, role: "img", "aria-label": label });
  bar.append(
    draw("rect", { class: "whole", width: "100%", height: "100%" }),
    draw("rect", { class: "used", width: one.used, height: "100%" }),
    draw("line", { class: "limit", x1: one.mark, x2: one.mark, y1: "0", y2: "100%" }),
  );
  return bar;
}

const UNITS = [[60, "s"], [60, "min"], [24, "h"], [365, "d"], [Infinity, "y"]];
/** The age of an ISO time in its largest unit. */
export function ago(time) {
  let age = (Date.now() - Date.parse(time)) / 1000;
  if (Number.isNaN(age)) return "";
  for (const [size, unit] of UNITS) {
    if (age < size) return unit === "s" ? "now" : `${Math.floor(age)} ${unit} ago`;
    age /= size;
  }
  return "";
}

/** A list of figures: name and value. */
export function figures(node, pairs) {
  show(node, ...pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));
}

/** A table: columns are names, or a name and a class; cells are nodes or text. */
export function table(columns, rows, kind = null) {
  const named = columns.map((one) => (Array.isArray(one) ? one : [one, null]));
  return el(
    "table",
    { class: kind },
    el("thead", {}, el("tr", {}, named.map(([name, kind]) => el("th", { scope: "col", class: kind }, name)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, at) => el("td", { class: named[at][1] }, cell))))),
  );
}

/** Keeps a value in the address without a new entry in the history. */
export function remember(name, value) {
  const url = new URL(location.href);
  if (value === null) url.searchParams.delete(name);
  else url.searchParams.set(name, value);
  history.replaceState(null, "", url);
}

/** A text that arrives in pieces: the first is shown, the rest on request. */
export function longText(first, next, more) {
  const text = el("pre", {}, first);
  if (next === null) return [text];
  const button = el("button", { type: "button" }, "Show more");
  button.addEventListener("click", async () => {
    const piece = await more(next);
    text.append(piece.text);
    next = piece.next;
    if (next === null) button.remove();
  });
  return [text, button];
}

export function quietly(work) {
  return (...given) => Promise.resolve(work(...given)).catch((problem) => say(problem.message));
}
