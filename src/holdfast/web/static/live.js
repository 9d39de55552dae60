// News of a session: one stream a tab, closed while the tab is hidden or paused.

import { sessionPath } from "./page.js";

/** Calls `changed(version)` when the session grows; returns a function that pauses and continues. */
export function follow(changed) {
  let stream = null;
  let paused = false;
  const update = () => {
    const wanted = !paused && !document.hidden;
    if (wanted && stream === null) {
      stream = new EventSource(`/api${sessionPath}/live`);
      stream.addEventListener("message", (event) => changed(Number(event.data)));
    } else if (!wanted && stream !== null) {
      stream.close();
      stream = null;
    }
  };
  document.addEventListener("visibilitychange", update);
  update();
  return (pause) => { paused = pause; update(); };
}
