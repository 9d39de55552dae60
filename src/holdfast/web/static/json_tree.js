// JSON as a tree: short values in a line, long texts as they are, nested ones folded; drawn when they are opened.

import { el, full } from "./page.js";

const MAX_ENTRIES = 200;
const LONG = 100;

/** Returns the tree of a JSON text; a text that is no JSON as it is. */
export function jsonTree(text) {
  try {
    return tree(JSON.parse(text));
  } catch {
    return el("pre", {}, text);
  }
}

function tree(value) {
  if (value === null || typeof value !== "object") return el("pre", {}, scalar(value));
  const entries = Object.entries(value);
  const list = el("dl", { class: "tree" }, entries.slice(0, MAX_ENTRIES).map(entry).flat());
  if (entries.length > MAX_ENTRIES) list.append(el("dt", {}, "…"), el("dd", {}, `${full(entries.length - MAX_ENTRIES)} more`));
  return list;
}

function entry([key, value]) {
  const name = el("dt", {}, key);
  if (value !== null && typeof value === "object") {
    const count = Object.keys(value).length;
    if (!count) return [name, el("dd", {}, Array.isArray(value) ? "[]" : "{}")];
    const short = JSON.stringify(value);
    if (short.length <= LONG) return [name, el("dd", {}, el("code", {}, short))];
    return [name, el("dd", {}, folded(`${full(count)} ${Array.isArray(value) ? "items" : "fields"}`, () => tree(value)))];
  }
  const text = scalar(value);
  return [name, el("dd", {}, text.length > LONG || text.includes("\n") ? el("pre", {}, text) : el("code", {}, text))];
}

const scalar = (value) => (typeof value === "string" ? value : String(value));

/** A summary whose content is built when it is first opened. */
export function folded(summary, build) {
  const node = el("details", {}, el("summary", {}, summary));
  node.addEventListener("toggle", () => { if (node.open && node.children.length === 1) node.append(build()); });
  return node;
}
