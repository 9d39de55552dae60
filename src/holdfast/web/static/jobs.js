// Background jobs: the queue, its workers and jobs, and the state of the newest sessions; read again every two seconds.

import { bindKeys, linkKeys } from "./keys.js";
import { addPauseButton, repeat } from "./live.js";
import { byId, el, figures, full, read, short, show, table, when } from "./page.js";

const SECONDS = 2;
const STATES = ["active", "waiting", "delayed", "failed", "completed"];
let shown = "";

async function refresh() {
  const found = await read("/api/jobs");
  byId("state").removeAttribute("aria-busy");
  const now = JSON.stringify(found, (key, value) => (["lease", "idle", "connected"].includes(key) ? undefined : value));
  if (now === shown) return;
  shown = now;
  show(byId("state"), sentence(found));
  const at = focused();
  drawQueue(found);
  show(byId("sessions"), found.sessions.length ? sessions(found.sessions) : quiet("This store has no sessions yet."));
  if (at) document.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
}

const focused = () => document.activeElement?.getAttribute("href");
const quiet = (text) => el("p", { class: "quiet" }, text);

function sentence({ sessions, queue, preset }) {
  const count = (state) => sessions.filter((one) => one.state === state).length;
  const parts = [`${count("compacting")} being compacted`, `${count("due")} due`, `${count("failed")} failing`];
  const without = preset ? "" : "; without a preset, nothing is due by itself";
  return `${parts.join(", ")}${without}${queue?.paused ? "; the queue is paused" : ""}`;
}

function drawQueue({ queue, problem }) {
  if (!queue) {
    const why = problem ?? "No queue is named (--queue redis://…): a worker without one is seen only while it compacts.";
    return show(byId("queue"), quiet(why));
  }
  const counts = el("dl", { class: "figures" });
  const workers = queue.workers.length;
  figures(counts, [["workers", full(workers)], ...STATES.map((state) => [state, full(queue.counts[state] ?? 0)])]);
  return show(
    byId("queue"),
    quiet(`Queue ${queue.name} at ${queue.address}`),
    counts,
    workers ? table(
      ["Worker", ["Connected for", "n"], ["Last command", "n"]],
      queue.workers.map((one) => [one.address, duration(one.connected), `${duration(one.idle)} ago`]),
    ) : quiet("No worker is connected: start one with holdfast worker --queue."),
    queue.jobs.length ? [el("h2", {}, "Jobs"), jobs(queue.jobs)] : null,
  );
}

function jobs(list) {
  return table(
    [["Session", "main"], "State", ["Attempts", "n wide"], ["Added", "wide"], ["Took", "n"]],
    list.map((one) => [
      [one.path ? el("a", { href: one.path }, one.session_id) : "not a job of Holdfast", reason(one.outcome)],
      one.state,
      full(one.attempts),
      one.added ? when(new Date(1000 * one.added).toISOString()) : "",
      one.finished && one.started ? duration(one.finished - one.started) : "",
    ]),
    "listing",
  );
}

function sessions(list) {
  return table(
    [["Session", "main"], "State", ["Tokens", "n"], ["Compacts at", "n wide"], ["Last compaction", "wide"], ["Time", "wide"]],
    list.map((one) => [
      [el("a", { href: one.path }, one.title), reason(one.reason)],
      one.state,
      short(one.tokens),
      one.next_at ? short(one.next_at) : "–",
      one.compaction ? el("a", { href: `${one.path}/c/${one.compaction}` }, `#${one.compaction}`) : "–",
      one.time ? when(one.time) : "",
    ]),
    "listing",
  );
}

const reason = (text) => (text ? el("div", { class: "quiet reason" }, text) : null);

function duration(seconds) {
  if (seconds < 60) return `${seconds < 10 && seconds % 1 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

bindKeys(linkKeys("td:first-child a"));
addPauseButton(repeat(SECONDS, refresh));
