// Keys of all pages, and the list of them.

import { byId, el } from "./page.js";

const help = [
  ["j k", "next and previous row"],
  ["g G", "first and last row"],
  ["/", "search; a number jumps to that event"],
  ["[ ]", "previous and next compaction"],
  ["u r", "undo the last compaction, redo it; asks first"],
  ["?", "this list"],
];

/** Binds keys to functions; keys in a field are left to the field. */
export function bindKeys(actions) {
  const all = { "/": () => byId("search")?.focus(), "?": showHelp, ...actions };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target instanceof HTMLElement) event.target.blur();
    if (event.target.closest("input, select, textarea, dialog")) return;
    const action = all[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });
}

/** Keys that move the focus between the links of a list. */
export function linkKeys(selector) {
  const move = (to) => {
    const links = [...document.querySelectorAll(selector)];
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, to(at, links.length)))]?.focus();
  };
  return { j: () => move((at) => at + 1), k: () => move((at) => at - 1), g: () => move(() => 0), G: () => move((_, count) => count - 1) };
}

function showHelp() {
  const dialog = el(
    "dialog",
    { "aria-label": "Keys" },
    el("strong", {}, "Keys"),
    el("dl", {}, help.map(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]).flat()),
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("keydown", (event) => { if (event.key === "?") dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
}
