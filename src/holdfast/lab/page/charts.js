"use strict";
// SVG elements, line charts and bar charts, independent of the data shown.

const SPACE = document.getElementById("blank").namespaceURI;

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function html(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") made.addEventListener("click", value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

const tip = document.getElementById("tip");

function withTooltip(element, text) {
  element.addEventListener("pointermove", (event) => {
    tip.textContent = typeof text === "function" ? text(event) : text;
    tip.hidden = false;
    const right = event.clientX + 14 + tip.offsetWidth > window.innerWidth;
    tip.style.left = (right ? event.clientX - tip.offsetWidth - 10 : event.clientX + 14) + "px";
    tip.style.top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 6) + "px";
  });
  element.addEventListener("pointerleave", () => { tip.hidden = true; });
  return element;
}

function axisTicks(least, most, whole) {
  const rough = (most - least) / 4;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * unit).find((n) => n >= rough && (!whole || Number.isInteger(n))) ?? 1;
  const found = [];
  for (let n = Math.ceil(least / step); n * step <= most * 1.0001; n += 1) found.push(n * step);
  return found;
}

// series: [{name, color, main, points: [{x, y, low, high, tip}]}]; xs: [{at, label}] evenly spaced
function lineChart({ title, series, xs, least = 0, most, label, whole = false, width = 420 }) {
  const height = 240, left = 40, right = 10, top = 12, bottom = 28;
  const x = (value) => left + (xs.length > 1 ? xs.findIndex((one) => one.at === value) / (xs.length - 1) : 0.5)
    * (width - left - right);
  const y = (value) => height - bottom
    - ((Math.max(least, Math.min(value, most)) - least) / (most - least)) * (height - top - bottom);
  const at = (one) => xs.map(({ at, label: place }) => [place, one.points.find((point) => point.x === at)?.y])
    .filter(([, value]) => typeof value === "number").map(([place, value]) => `${label(value)} at ${place}`).join(", ");
  const spoken = `${title}. ${series.map((one) => `${one.name}: ${at(one)}`).join("; ")}`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spoken });
  for (const value of axisTicks(least, most, whole)) {
    picture.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    picture.append(svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, label(value)));
  }
  xs.forEach((one, place) => picture.append(svg("text", {
    x: x(one.at), y: height - 8, "text-anchor": place === 0 ? "start" : place === xs.length - 1 ? "end" : "middle",
  }, one.label)));
  for (const one of [...series].sort((a, b) => a.main - b.main)) {
    const group = svg("g", { "data-name": one.name });
    const points = one.points.filter((point) => point.y !== null);
    if (one.main && points.every((point) => point.low !== undefined)) {
      const upper = points.map((point) => `${x(point.x)},${y(point.high)}`);
      const lower = points.map((point) => `${x(point.x)},${y(point.low)}`).reverse();
      group.append(svg("polygon", { points: [...upper, ...lower].join(" "), fill: one.color, opacity: 0.16 }));
    }
    group.append(svg("polyline", {
      class: "series" + (one.main ? " main" : ""), stroke: one.color,
      points: points.map((point) => `${x(point.x)},${y(point.y)}`).join(" "),
      "stroke-dasharray": one.over ? "4 4" : "none",
    }));
    for (const point of points) {
      group.append(svg("circle", { cx: x(point.x), cy: y(point.y), r: one.main ? 4 : 2.8, fill: one.color }));
      const spot = svg("circle", { cx: x(point.x), cy: y(point.y), r: 11, fill: "transparent" });
      spot.addEventListener("pointerenter", () => emphasise(picture, one.name));
      spot.addEventListener("pointerleave", () => emphasise(picture, null));
      group.append(withTooltip(spot, `${one.name}\n${point.tip}`));
    }
    picture.append(group);
  }
  return picture;
}

function emphasise(picture, name) {
  const known = name !== null && [...picture.querySelectorAll("g[data-name]")].some((group) => group.dataset.name === name);
  for (const group of picture.querySelectorAll("g[data-name]")) {
    group.classList.toggle("dim", known && group.dataset.name !== name);
    group.classList.toggle("strong", known && group.dataset.name === name);
  }
}

// rows: [{name, main, parts: [{share, color, tip}], low, high, note}]
function barChart({ rows, width = 1180, left = 160, right = 165 }) {
  const high = 24;
  const spoken = rows.map((row) => `${row.name}: ${row.note}`).join("; ");
  const picture = svg("svg", { viewBox: `0 0 ${width} ${rows.length * high + 6}`, role: "img", "aria-label": spoken });
  const x = (share) => left + share * (width - left - right);
  rows.forEach((row, place) => {
    const top = place * high + 4;
    picture.append(svg("text", {
      class: "name" + (row.main ? " strong" : ""), x: left - 10, y: top + 14, "text-anchor": "end",
      opacity: row.pale ? 0.5 : 1,
    }, row.name));
    let from = 0;
    for (const part of row.parts) {
      const bar = svg("rect", {
        x: x(from), y: top, width: Math.max(0, x(from + part.share) - x(from)), height: high - 8, rx: 2,
        fill: part.color, opacity: row.pale ? 0.45 : 1,
      });
      picture.append(withTooltip(bar, `${row.name}\n${part.tip}`));
      from += part.share;
    }
    if (row.low !== undefined) {
      const middle = top + (high - 8) / 2;
      picture.append(svg("path", {
        d: `M${x(row.low)},${middle}H${x(row.high)}M${x(row.low)},${middle - 4}v8M${x(row.high)},${middle - 4}v8`,
        stroke: "var(--ink)", "stroke-width": 1.4, opacity: row.pale ? 0.4 : 0.8,
      }));
    }
    picture.append(svg("text", { x: width - right + 10, y: top + 14 }, row.note));
  });
  return picture;
}
