// All sessions, and search: pages without moving parts; only their keys are here.

import { bindKeys } from "./keys.js";

const links = [...document.querySelectorAll("td:first-child a, .hits a.seq")];
function move(step) {
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + step))]?.focus();
}
bindKeys({ j: () => move(1), k: () => move(-1), g: () => links[0]?.focus(), G: () => links.at(-1)?.focus() });
