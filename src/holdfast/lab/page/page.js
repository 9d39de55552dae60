// Draws the page from the embedded data.

const { report, quantities: all } = JSON.parse(document.getElementById("data").textContent);
const allCells = report.kinds.flatMap((kind) => [...kind.cells, ...kind.at_summary]);
const quantities = all.filter((one) => allCells.some((cell) => cell.values[one.key] !== null));
const settings = report.settings;
const SURPRISE = ["surprise_1", "surprise_3", "surprise_8"];
const LEDGER = "Holdfast ledger", REAL = "real summary";
const colors = Object.fromEntries(report.contestants.map((one) => [one.name, ""]));
const focus = settings.budgets.includes(4000) ? 4000 : settings.budgets[settings.budgets.length >> 1];
const state = { kind: report.kinds[0], budget: focus, hidden: new Set() };

(function assignColors() {
  const own = { [LEDGER]: "kept", "Holdfast summary": "summary", [REAL]: "real" };
  Object.keys(colors).forEach((name) => { colors[name] = `var(--${own[name] ?? "other"})`; });
})();

const share = (value) => value === null ? "–" : value.toFixed(2);
const whole = (value) => Math.round(value).toLocaleString("en");
const count = (value) => value >= 1000 ? (value / 1000).toFixed(value % 1000 && value < 10000 ? 1 : 0) + "k" : whole(value);
const formatValue = (quantity, value) => value === null || value === undefined ? "–"
  : quantity.share || quantity.unit ? share(value) : quantity.key === "invented" ? value.toFixed(value > 0 && value < 0.05 ? 2 : 1) : whole(value);
const shown = (cell) => !state.hidden.has(cell.contestant);
const byKey = Object.fromEntries(all.map((quantity) => [quantity.key, quantity]));

function span(cell, quantity) {
  const found = cell.intervals[quantity.key];
  return found ? ` [${formatValue(quantity, found.low)} – ${formatValue(quantity, found.high)}]` : "";
}

function lines(cells, key, at) {
  const quantity = byKey[key];
  return report.contestants.filter((one) => !state.hidden.has(one.name)).map((one) => {
    const own = cells.filter((cell) => cell.contestant === one.name);
    return {
      name: one.name, color: colors[one.name], main: one.name === LEDGER, over: own.some((cell) => cell.over),
      points: own.map((cell) => ({
        x: at(cell), y: cell.values[key], low: cell.intervals[key]?.low, high: cell.intervals[key]?.high,
        tip: `${quantity.title} ${formatValue(quantity, cell.values[key])}${span(cell, quantity)}\nsize ${whole(cell.tokens)}`
          + (cell.over ? ", over the budget" : ""),
      })),
    };
  }).filter((one) => one.points.length);
}

function plot(key, cells, at, xs, width) {
  const quantity = byKey[key];
  const series = lines(cells, key, at);
  const values = series.flatMap((one) => one.points.flatMap((point) => [point.y, one.main ? point.low : null, one.main ? point.high : null]))
    .filter((value) => typeof value === "number");
  const most = quantity.share ? 1 : quantity.unit ? Math.max(0.1, ...values) * 1.03 : Math.max(1, ...values) * 1.05;
  const least = quantity.unit && values.length ? Math.min(...values) * 0.97 : 0;
  return html("figure", {}, html("figcaption", {}, quantity.title, html("small", {}, describe(quantity))),
    lineChart({ title: quantity.title, whole: !quantity.share && !quantity.unit, series, xs, least, most, width, label: quantity.share || quantity.unit ? (value) => value.toFixed(2) : count }));
}

const plural = (count, name) => `${whole(count)} ${name}${count === 1 ? "" : "s"}`;
const describe = (quantity) => quantity.about + (quantity.unit ? ` (${quantity.unit}; lower is better)` : "");
const measured = (keys, cells) => keys.filter((key) => cells.some((cell) => cell.values[key] !== null));

function drawRetention() {
  const xs = settings.budgets.map((budget) => ({ at: budget, label: count(budget) + " tokens" }));
  const keys = ["names", "in_context", "edited_lines", "fetch", "users", "errors", "modified", "commands"];
  const plots = (keys) => measured(keys, state.kind.cells).map((key) => plot(key, state.kind.cells, (cell) => cell.budget, xs));
  document.getElementById("retention").replaceChildren(...plots(keys));
  const predicted = plots(SURPRISE);
  document.getElementById("surprise").replaceChildren(...predicted);
  document.getElementById("surprise-part").hidden = !predicted.length;
}

function drawLosses() {
  const cells = state.kind.cells.filter((cell) => cell.budget === state.budget && shown(cell));
  const ordered = [...cells].sort((a, b) => (b.values.in_context ?? 0) - (a.values.in_context ?? 0));
  const rows = ordered.filter((cell) => cell.values.names !== null).map((cell) => {
    const { names, in_context } = cell.values;
    const interval = cell.intervals.in_context;
    return {
      name: cell.contestant, main: cell.contestant === LEDGER, pale: cell.over, low: interval?.low, high: interval?.high,
      parts: [
        { share: in_context, color: "var(--kept)", tip: `in context: ${share(in_context)}${span(cell, byKey.in_context)}` },
        { share: names - in_context, color: "var(--present)", tip: `present, without its line: ${share(names - in_context)}` },
        { share: 1 - names, color: "var(--lost)", tip: `lost: ${share(1 - names)}` },
      ],
      note: `lost ${share(1 - names)} · ${whole(cell.tokens)} tokens`,
    };
  });
  const place = document.getElementById("losses");
  const width = Math.max(320, (place.clientWidth || 1212) - 32);
  const narrow = width < 700;
  place.replaceChildren(html("figure", {}, keys(), barChart(narrow
    ? { rows: rows.map((row) => ({ ...row, note: row.note.split(" · ")[0] })), width, left: 130, right: 78 }
    : { rows, width, left: 160, right: 165 })));
  drawNumbers(ordered);
}

function keys() {
  const made = html("div", {});
  for (const [color, text] of [["kept", "on a line that keeps its context"], ["present", "present, without its line"],
    ["lost", "lost"]]) {
    const box = html("i", {});
    box.style.background = `var(--${color})`;
    made.append(html("span", { class: "key" }, box, text));
  }
  return made;
}

function drawNumbers(cells) {
  const head = html("tr", {}, html("th", {}, ""), ...quantities.map((one) => html("th", { title: describe(one) }, one.title)),
    html("th", {}, "valid"), html("th", {}, "size"), html("th", {}, "ms"));
  const best = Object.fromEntries(quantities.map((quantity) => {
    const values = cells.filter((cell) => !cell.over).map((cell) => cell.values[quantity.key]).filter((v) => v !== null);
    return [quantity.key, values.length ? (quantity.more_is_better ? Math.max : Math.min)(...values) : null];
  }));
  const rows = cells.map((cell) => html("tr", { class: [cell.over ? "over" : "", cell.contestant === LEDGER ? "main" : ""].join(" ") },
    html("td", {}, cell.contestant),
    ...quantities.map((quantity) => {
      const value = cell.values[quantity.key];
      const text = formatValue(quantity, value);
      const wrong = quantity.key === "invented" && value > 0;
      const first = !cell.over && value !== null && text === formatValue(quantity, best[quantity.key]);
      const made = html("td", { class: wrong ? "bad" : first ? "best" : "" }, text);
      return quantity.main ? withTooltip(made, `${quantity.title} ${text}${span(cell, quantity)}`) : made;
    }),
    html("td", {}, cell.valid === null ? "–" : Math.round(100 * cell.valid) + " %"),
    html("td", {}, whole(cell.tokens)), html("td", {}, cell.milliseconds.toFixed(cell.milliseconds < 10 ? 1 : 0))));
  document.getElementById("numbers").replaceChildren(head, ...rows);
}

function drawRolling() {
  const part = document.getElementById("rolling-part");
  part.hidden = !state.kind.in_a_row.length;
  if (part.hidden) return;
  const rounds = [...new Set(state.kind.in_a_row.map((cell) => cell.rounds))];
  const once = state.kind.in_a_row.filter((cell) => cell.rounds === rounds[0]).map((cell) => ({
    ...cell, rounds: 1, intervals: {},
    values: Object.fromEntries(Object.entries(cell.values).map(([key, value]) =>
      [key, key in cell.fall && cell.fall[key] < 1 ? value / (1 - cell.fall[key]) : null])),
  }));
  const xs = [1, ...rounds].map((n) => ({ at: n, label: n === 1 ? "once" : n + " times" }));
  document.getElementById("rolling").replaceChildren(...measured(["names", "in_context", ...SURPRISE], state.kind.in_a_row).map((key) =>
    plot(key, [...once, ...state.kind.in_a_row], (cell) => cell.rounds, xs, 580)));
}

function drawSummary() {
  const part = document.getElementById("summary-part");
  part.hidden = !state.kind.at_summary.length;
  if (part.hidden) return;
  const cells = state.kind.at_summary.filter(shown);
  const figures = measured(["in_context", "names", "edited_lines", ...SURPRISE], cells).map((key) => {
    const quantity = byKey[key];
    const most = quantity.share ? 1 : Math.max(...cells.map((cell) => cell.intervals[key]?.high ?? cell.values[key] ?? 0));
    const first = quantity.more_is_better ? -1 : 1;
    const scaled = (value) => typeof value === "number" ? value / most : undefined;
    const rows = [...cells].sort((a, b) => first * ((a.values[key] ?? 0) - (b.values[key] ?? 0))).map((cell) => ({
      name: cell.contestant, main: [LEDGER, REAL].includes(cell.contestant), pale: cell.over,
      low: scaled(cell.intervals[key]?.low), high: scaled(cell.intervals[key]?.high),
      parts: [{ share: scaled(cell.values[key]) ?? 0, color: colors[cell.contestant],
        tip: `${quantity.title} ${formatValue(quantity, cell.values[key])}${span(cell, quantity)}\nsize ${whole(cell.tokens)}` }],
      note: formatValue(quantity, cell.values[key]),
    }));
    return html("figure", {}, html("figcaption", {}, quantity.title,
      html("small", {}, `${cells[0].cuts === 1 ? "1 summary" : `${cells[0].cuts} summaries`} of ${plural(state.kind.sessions, "session")}${quantity.unit ? `; ${quantity.unit}` : ""}`)), barChart({ rows, width: 400, left: 134, right: 48 }));
  });
  document.getElementById("summary").replaceChildren(html("div", { class: "grid" }, ...figures));
}

function drawCuts() {
  const one = report.sessions[document.getElementById("session").value];
  if (!one) return;
  document.getElementById("cuts").replaceChildren(...one.cuts.map((cut) => {
    const matrix = html("div", { class: "matrix" });
    const list = html("p", { class: "lostnames" });
    for (const [contestant, digits] of Object.entries(cut.kept)) {
      const row = html("div", { class: "squares" });
      [...digits].forEach((digit, place) => {
        const square = html("i", { class: "v" + digit, "data-place": place });
        withTooltip(square, `${cut.names[place]}\n${contestant}: ${["lost", "present, without its line", "kept"][digit]}`);
        square.addEventListener("pointerenter", () => mark(matrix, place, true));
        square.addEventListener("pointerleave", () => mark(matrix, place, false));
        row.append(square);
      });
      const lost = cut.names.filter((_, place) => digits[place] === "0");
      const kept = [...digits].filter((digit) => digit === "2").length;
      const showLost = () => { list.textContent = `${contestant} lost ${lost.length} of ${cut.names.length}: ${lost.join("  ")}`; };
      matrix.append(html("button", { type: "button", class: contestant === LEDGER ? "main" : "", onclick: showLost }, contestant),
        row, html("span", { class: "share" }, `${kept} of ${cut.names.length}`));
    }
    return html("div", { class: "cut" }, html("h3", {},
      `After ${cut.cut} messages, ${whole(cut.tokens)} tokens: ${cut.names.length} names were needed`), matrix, list);
  }));
}

function mark(matrix, place, on) {
  for (const square of matrix.querySelectorAll(`i[data-place="${place}"]`)) square.classList.toggle("pointed", on);
}

function choose(id, values, text, chosen, take) {
  document.getElementById(id).replaceChildren(...values.map((value) => html("button", {
    type: "button", "aria-pressed": value === chosen(), onclick: () => { take(value); draw(); },
  }, text(value))));
}

function draw() {
  choose("kinds", report.kinds, (kind) => `${kind.kind} (${kind.sessions})`, () => state.kind, (kind) => { state.kind = kind; listSessions(); });
  choose("budgets", settings.budgets, (budget) => count(budget) + " tokens", () => state.budget, (budget) => { state.budget = budget; });
  const here = new Set([...state.kind.cells, ...state.kind.at_summary].map((cell) => cell.contestant));
  document.getElementById("legend").replaceChildren(...report.contestants.filter((one) => here.has(one.name)).map((one) => {
    const dash = html("i", {});
    dash.style.background = colors[one.name];
    const toggle = () => { state.hidden.has(one.name) ? state.hidden.delete(one.name) : state.hidden.add(one.name); draw(); };
    const legend = withTooltip(html("button", { type: "button", class: one.name === LEDGER ? "main" : "", onclick: toggle,
      "aria-pressed": !state.hidden.has(one.name) }, dash, one.name), one.about);
    const point = (name) => document.querySelectorAll("figure svg").forEach((picture) => emphasise(picture, name));
    legend.addEventListener("pointerenter", () => point(one.name));
    legend.addEventListener("pointerleave", () => point(null));
    return legend;
  }));
  for (const place of document.querySelectorAll("b.budget")) place.textContent = whole(state.budget);
  for (const place of document.querySelectorAll("b.focus")) place.textContent = whole(focus);
  drawRetention(); drawLosses(); drawRolling(); drawSummary(); drawCuts();
}

function listSessions() {
  const select = document.getElementById("session");
  select.replaceChildren(...report.sessions.map((one, place) => [one, place])
    .filter(([one]) => one.kind === state.kind.kind)
    .map(([one, place]) => html("option", { value: place }, `${one.session} · ${needed(one)} names`)));
  const most = Math.max(...[...select.options].map((option) => needed(report.sessions[option.value])));
  select.value = [...select.options].find((option) => needed(report.sessions[option.value]) === most)?.value ?? "";
}

function needed(session) {
  return session.cuts.reduce((sum, cut) => sum + cut.names.length, 0);
}

function showFacts() {
  const cuts = report.kinds.reduce((sum, kind) => sum + kind.cuts, 0);
  const half = { report: "sessions not used for learning", learn: "sessions used for learning", all: "all sessions" };
  const sessions = report.kinds.reduce((sum, kind) => sum + kind.sessions, 0);
  document.getElementById("facts").textContent = `${plural(sessions, "session")}, ${plural(cuts, "cut")} · ${half[settings.half]} · tokens counted with ${settings.estimator}`;
  const list = html("dl", {});
  for (const one of report.contestants) list.append(html("dt", {}, one.name), html("dd", {}, one.about));
  const notes = [...report.left_out.map((what) => "Left out: " + what), ...report.failures.map((what) => "Failed: " + what)];
  document.getElementById("footer").replaceChildren(list, ...notes.map((note) => html("p", {}, note)));
}

document.getElementById("scheme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.scheme ? root.dataset.scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.scheme = dark ? "light" : "dark";
});
document.getElementById("session").addEventListener("change", drawCuts);
showFacts();
listSessions();
draw();
