// Turns a key into a cookie.

import { byId, quietly, read } from "./page.js";

byId("login").addEventListener("submit", quietly(async (event) => {
  event.preventDefault();
  await read("/login", {
    method: "POST",
    headers: { "content-type": "application/json", "x-holdfast": "1" },
    body: JSON.stringify({ key: byId("key").value }),
  });
  location.href = "/";
}));
