// The content of an event: texts as Markdown, calls beside their results, edits as differences, images, data as trees.

import { folded, jsonTree } from "./json_tree.js";
import { diffLines, lineDiff } from "./line_diff.js";
import { markdown } from "./markdown.js";
import { el, longText, say, sessionPath } from "./page.js";

const EDITS = [["old_string", "new_string"], ["oldText", "newText"], ["old_str", "new_str"]];

/** Draws an event: its parts if it has them, else its text piece by piece. */
export function content(event, more) {
  if (!event.parts) return longText(event.text, event.next, more);
  const [seq, parts] = event.beside ?? [0, []];
  const beside = parts.length ? [el("p", { class: "quiet" }, parts[0].kind === "result" ? "Its result, " : "Its call, ",
    el("a", { href: `${sessionPath}?e=${seq}` }, `#${seq}`)), parts.map(part)] : [];
  const own = event.parts.map(part);
  const first = parts[0]?.kind === "call" ? [...beside, own] : [own, ...beside];
  return first.flat(2);
}

/** The tool that an event calls, or whose result it is. */
export const toolOf = (event) => event.tool || event.beside?.[1][0]?.name || "";

function part(one) {
  const text = one.text ?? "";
  switch (one.kind) {
    case "text": return section("", text, markdown(text));
    case "note": return section("Notes that the model sees", text, markdown(text));
    case "thinking": return folded("Thinking", () => el("pre", {}, text));
    case "call": return section(`→ ${one.name}`, text, call(text));
    case "result": return section(`← ${one.name || "result"}${one.failed ? " failed" : ""}`, text, result(text), one.failed);
    case "image": return el("figure", {}, el("img", { src: one.src, alt: text }), el("figcaption", { class: "quiet" }, text));
    case "data": return folded(one.name, () => jsonTree(text));
    default: return el("p", { class: "sentence" }, text);
  }
}

function section(name, text, drawn, failed = false) {
  return el("section", { class: `part${failed ? " failed" : ""}` },
    el("div", { class: "head" }, el("span", { class: "role" }, name), copyButton(text)), drawn);
}

function copyButton(text) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied.");
    } catch {
      say("The browser does not let this page copy.");
    }
  };
  return el("button", { type: "button", class: "copy", onclick: copy }, "Copy");
}

/** The arguments of a call; an edit as the difference that it makes. */
function call(text) {
  let given;
  try { given = JSON.parse(text); } catch { return patched(text); }
  if (given === null || typeof given !== "object") return jsonTree(text);
  for (const [old, now] of EDITS) {
    if (typeof given[old] === "string" && typeof given[now] === "string") {
      const { [old]: before, [now]: after, ...rest } = given;
      return [jsonTree(JSON.stringify(rest)), lineDiff(before, after)];
    }
  }
  return jsonTree(text);
}

const patched = (text) => (/^\*\*\* Begin Patch|^diff --git|^--- /m.test(text)
  ? diffLines(text.split("\n").map((line) => (/^[+-]/.test(line) ? [line[0], line.slice(1)] : ["", line])))
  : el("pre", {}, text));
const result = (text) => (/^\s*[[{]/.test(text) ? jsonTree(text) : patched(text));
