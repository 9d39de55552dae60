// All sessions, and search: their keys, and the cost of each session, which takes reading its log.

import { bindKeys } from "./keys.js";
import { money, read } from "./page.js";

const MAX_EVENTS = 5000;

const links = [...document.querySelectorAll("td:first-child a, .hits a.seq")];
function move(step) {
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + step))]?.focus();
}
bindKeys({ j: () => move(1), k: () => move(-1), g: () => links[0]?.focus(), G: () => links.at(-1)?.focus() });

for (const cell of document.querySelectorAll(".price")) {
  if (Number(cell.dataset.events) > MAX_EVENTS) continue;
  const found = await read(`/api${cell.dataset.path}/price`).catch(() => null);
  if (found?.count) cell.textContent = money(found.price);
}
