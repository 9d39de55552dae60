// Lists of links (all sessions, search, reports): their keys, and the cost of each session, which takes reading its log.

import { bindKeys, linkKeys } from "./keys.js";
import { money, read } from "./page.js";

const MAX_EVENTS = 5000;

bindKeys(linkKeys("td:first-child a, .hits a.seq"));

for (const cell of document.querySelectorAll(".price")) {
  if (Number(cell.dataset.events) > MAX_EVENTS) continue;
  const found = await read(`/api${cell.dataset.path}/price`).catch(() => null);
  if (found?.count) cell.textContent = money(found.price);
}
