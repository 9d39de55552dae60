// Markdown as elements: built from text nodes alone, so that no text becomes markup; links and images stay text.

import { el } from "./page.js";

const BULLET = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
// Every repetition is bounded: a hostile text must not keep the page busy.
const INLINE = /(`{1,3})([^`].{0,400}?|[^`])\1(?!`)|\*\*(\S(?:.{0,400}?\S)?)\*\*|(?<![\w*])\*(\S(?:[^*\n]{0,400}?\S)?)\*(?!\w)/s;
const MAX_INLINE = 20000;

/** Returns the blocks of a text as elements. */
export function markdown(text) {
  const lines = text.split("\n");
  const blocks = [];
  for (let at = 0; at < lines.length;) at = block(lines, at, blocks);
  return el("div", { class: "markdown" }, blocks);
}

/** Reads one block from a line on; returns the line after it. */
function block(lines, at, blocks) {
  const line = lines[at];
  const fence = /^\s*(`{3,}|~{3,})(.*)$/.exec(line);
  if (fence) {
    let end = at + 1;
    while (end < lines.length && !lines[end].trimStart().startsWith(fence[1])) end++;
    blocks.push(el("pre", { class: "code" }, lines.slice(at + 1, end).join("\n")));
    return end + 1;
  }
  const heading = /^(#{1,6})\s+(.*)$/.exec(line);
  if (heading) {
    blocks.push(el("p", { class: `heading h${heading[1].length}` }, inline(heading[2])));
    return at + 1;
  }
  if (!line.trim()) return at + 1;
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
    blocks.push(el("hr"));
    return at + 1;
  }
  if (isTable(lines, at)) return rows(lines, at, blocks);
  if (BULLET.test(line)) return bullets(lines, at, blocks);
  const quote = line.startsWith(">");
  let end = at;
  while (end < lines.length && lines[end].trim() && lines[end].startsWith(">") === quote && !starts(lines, end, at)) end++;
  const text = lines.slice(at, end).map((one) => (quote ? one.replace(/^> ?/, "") : one)).join("\n");
  blocks.push(el(quote ? "blockquote" : "p", {}, inline(text)));
  return end;
}

const starts = (lines, at, first) => at > first
  && (BULLET.test(lines[at]) || /^(#{1,6}\s|\s*(```|~~~))/.test(lines[at]) || isTable(lines, at));
const isTable = (lines, at) => /^\s*\|.*\|\s*$/.test(lines[at]) && /^\s*\|[\s:|-]+\|\s*$/.test(lines[at + 1] ?? "");
const cells = (line) => line.trim().slice(1, -1).split("|").map((cell) => inline(cell.trim()));

function rows(lines, at, blocks) {
  const head = cells(lines[at]);
  const found = [];
  for (at += 2; at < lines.length && /^\s*\|/.test(lines[at]); at++) found.push(cells(lines[at]));
  blocks.push(el("table", {}, el("thead", {}, el("tr", {}, head.map((cell) => el("th", { scope: "col" }, cell)))),
    el("tbody", {}, found.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell)))))));
  return at;
}

function bullets(lines, at, blocks) {
  const items = [];
  for (; at < lines.length && lines[at].trim(); at++) {
    const bullet = BULLET.exec(lines[at]);
    if (!bullet && starts(lines, at, -1)) break;
    if (bullet) items.push([bullet[1].length, bullet[2], bullet[3]]);
    else items[items.length - 1][2] += `\n${lines[at].trim()}`;
  }
  blocks.push(el("ul", {}, items.map(([indent, mark, text]) => {
    const item = el("li", { class: `depth${Math.min(3, Math.floor(indent / 2))}` }, inline(text));
    item.dataset.mark = /\d/.test(mark) ? mark : "•";
    return item;
  })));
  return at;
}

/** Code, strong and emphasis within a text; everything else as it is. */
function inline(text) {
  const found = [];
  let rest = text.slice(0, MAX_INLINE);
  for (let match = INLINE.exec(rest); match; match = INLINE.exec(rest)) {
    found.push(rest.slice(0, match.index));
    if (match[2] !== undefined) found.push(el("code", {}, match[2]));
    else found.push(el(match[3] !== undefined ? "strong" : "em", {}, match[3] ?? match[4]));
    rest = rest.slice(match.index + match[0].length);
  }
  found.push(rest, text.slice(MAX_INLINE));
  return found;
}
