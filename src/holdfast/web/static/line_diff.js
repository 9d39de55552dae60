// Two texts compared line by line: the common start and end, and between them the longest common subsequence.

import { el } from "./page.js";

const MAX_CELLS = 4e6;

/** Returns the changed lines with a few around them. */
export function lineDiff(before, after) {
  const old = before.split("\n");
  const now = after.split("\n");
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  const lines = [
    ...old.slice(Math.max(0, start - 3), start).map((line) => [" ", line]),
    ...changes(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...old.slice(old.length - end, old.length - end + 3).map((line) => [" ", line]),
  ];
  return diffLines(lines);
}

function changes(old, now) {
  if (old.length * now.length > MAX_CELLS) return [...old.map((line) => ["-", line]), ...now.map((line) => ["+", line])];
  const width = now.length + 1;
  const best = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      best[i * width + j] = old[i] === now[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const found = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) { found.push([" ", old[i++]]); j++; }
    else if (j >= now.length || (i < old.length && best[(i + 1) * width + j] >= best[i * width + j + 1])) found.push(["-", old[i++]]);
    else found.push(["+", now[j++]]);
  }
  return found;
}

/** Draws lines with their sign; neighbours of one kind are one element. */
export function diffLines(lines) {
  const kinds = { "+": "added", "-": "removed" };
  const runs = [];
  for (const [sign, line] of lines) {
    const kind = kinds[sign] ?? "quiet";
    if (runs.at(-1)?.[0] === kind) runs.at(-1)[1] += `${sign}${line}\n`;
    else runs.push([kind, `${sign}${line}\n`]);
  }
  return el("pre", { class: "diff" }, runs.map(([kind, text]) => el("span", { class: kind }, text)));
}
