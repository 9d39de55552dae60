// News: of a session by one stream a tab, of other pages by reading again; neither while the tab is hidden or paused.

import { el, quietly, sessionPath } from "./page.js";

/** Calls `changed(version)` when the session grows; returns a function that pauses and continues. */
export function follow(changed) {
  let stream = null;
  return whileSeen((wanted) => {
    if (wanted && stream === null) {
      stream = new EventSource(`/api${sessionPath}/live`);
      stream.addEventListener("message", (event) => changed(Number(event.data)));
    } else if (!wanted && stream !== null) {
      stream.close();
      stream = null;
    }
  });
}

/** Calls `work()` now and then; returns a function that pauses and continues. */
export function repeat(seconds, work) {
  let timer = 0;
  let seen = false;
  const run = async () => {
    clearTimeout(timer);
    await quietly(work)();
    clearTimeout(timer);
    if (seen) timer = setTimeout(run, 1000 * seconds);
  };
  return whileSeen((wanted) => {
    const starts = wanted && !seen;
    seen = wanted;
    clearTimeout(timer);
    if (starts) run();
  });
}

/** Calls `update(wanted)` when the tab is shown, hidden, paused or continued. */
function whileSeen(update) {
  let paused = false;
  const look = () => update(!paused && !document.hidden);
  document.addEventListener("visibilitychange", look);
  look();
  return (pause) => { paused = pause; look(); };
}

/** Adds the button that pauses and continues. */
export function addPauseButton(pause) {
  const live = el("button", { type: "button", "aria-pressed": "true", class: "aside", onclick: () => {
    const on = live.getAttribute("aria-pressed") !== "true";
    live.setAttribute("aria-pressed", String(on));
    pause(!on);
  } }, "Live");
  document.querySelector(".title").append(live);
}
