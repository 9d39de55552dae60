// What a session cost, and what its compactions saved.

import { drawChart } from "./chart.js";
import { bindKeys, linkKeys } from "./keys.js";
import { byId, calls, el, figures, full, money, quietly, read, sessionPath, short, show, table } from "./page.js";

async function start() {
  const found = await read("cost");
  const { usage, replies, compactions } = found;
  const left = found.compacts_at && found.growth > 0 ? Math.max(0, Math.ceil((found.compacts_at - found.tokens) / found.growth)) : null;
  show(
    byId("state"),
    el("strong", {}, full(found.tokens)),
    " tokens now",
    left === null ? "" : `; at the rate of the last events, the next compaction in about ${full(left)} events`,
  );
  figures(byId("totals"), [
    ["calls with usage", full(found.count)],
    ["input, billed in total", full(usage.input ?? 0)],
    ["read from the cache", full(usage.cache_read ?? 0)],
    ["written to the cache", full(usage.cache_write ?? 0)],
    ["output", full(usage.output ?? 0)],
    ["price", found.count ? money(found.price) : "no usage"],
  ]);
  if (replies.length) {
    const data = [replies.map((one) => one[0]), replies.map((one) => one[1] + one[2] + one[3]), replies.map((one) => one[2])];
    drawChart(byId("calls"), data, [{ name: "whole prompt", color: "--soft" }, { name: "read from the cache", color: "--accent", fill: true }], {
      choose: (seq) => { location.href = `${sessionPath}?e=${seq}`; },
    });
  } else show(byId("calls"), el("p", { class: "quiet" }, "No reply of this session has usage: append it with usage=."));
  show(byId("compactions"), compactions.length ? listed(compactions) : el("p", { class: "quiet" }, "None yet."));
}

function listed(compactions) {
  return table(
    ["Compaction", ["Tokens", "n"], ["Archived", "n wide"], ["Model calls", "n wide"], ["Cache written again", "n wide"], ["Cost", "n"], "Paid for itself"],
    compactions.toReversed().map((one) => [
      [el("a", { href: `${sessionPath}/c/${one.seq}` }, `#${one.seq}`), one.undone ? " undone" : ""],
      `${short(one.before)} → ${short(one.after)}`,
      full(one.archived),
      full(one.cost?.calls ?? 0),
      one.cost ? full(one.cost.rewritten ?? 0) : "–",
      one.cost ? money(one.spent) : "–",
      paid(one),
    ]),
  );
}

function paid(one) {
  if (!one.cost) return "unknown: another tool made it";
  const after = one.cost.pays_after;
  if (after === null || after === undefined) return "never: it saves too little";
  if (after === 0) return "at once";
  if (one.paid_at) return `at #${one.paid_at}, after ${calls(after)}`;
  return `not yet: ${full(one.replies_since)} of ${calls(after)}`;
}

bindKeys(linkKeys("td:first-child a"));
quietly(start)();
