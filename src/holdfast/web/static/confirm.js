// Asks once before an action, with what will be there after it.

import { el, read } from "./page.js";

/** Reads what an action would do and asks; returns whether it was confirmed. */
export async function confirmed(action, seq = null) {
  return ask(await read(`before/${action}${seq ? `?seq=${seq}` : ""}`));
}

/** Shows a plan in a dialog: its title, facts and notes. */
export function ask({ title, facts, notes }) {
  return new Promise((done) => {
    const dialog = el("dialog", { "aria-label": title, class: "ask" },
      el("strong", {}, title),
      el("dl", { class: "figures" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      notes.map((note) => el("p", {}, note)),
      el("form", { method: "dialog", class: "controls" },
        el("button", { value: "yes", class: "do" }, title),
        el("button", { value: "", autofocus: true }, "Cancel")));
    dialog.addEventListener("close", () => {
      dialog.remove();
      done(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
