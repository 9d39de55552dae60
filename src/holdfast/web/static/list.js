// A list of any length with rows of one height: only the visible rows exist, and rows are read a page at a time.

import { el, quietly } from "./page.js";

const PAGE = 200;
const AROUND = 8;

export class VirtualList {
  /** `load(first, last)` returns rows by index, `draw(row, index)` the class and cells of one; `select(index)` is called. */
  constructor(element, { count, load, draw, select, height = 28 }) {
    Object.assign(this, { element, count, load, draw, height, onSelect: select });
    this.pages = new Map();
    this.rows = new Map();
    this.selected = -1;
    this.space = el("div", { role: "presentation" });
    element.replaceChildren(this.space);
    element.addEventListener("scroll", () => this.schedule(), { passive: true });
    element.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) this.select(Number(row.dataset.index), false);
    });
    new ResizeObserver(() => this.schedule()).observe(element);
    this.resize(count);
  }

  resize(count) {
    this.count = count;
    this.space.style.height = `${count * this.height}px`;
    this.schedule();
  }

  /** Forgets what was read from an index on, since it has changed. */
  forget(from = 0) {
    for (const page of this.pages.keys()) if ((page + 1) * PAGE > from) this.pages.delete(page);
    for (const [index, row] of this.rows) if (index >= from) this.drop(index, row);
    this.schedule();
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.render();
    });
  }

  render() {
    const top = Math.max(0, Math.floor(this.element.scrollTop / this.height) - AROUND);
    const seen = Math.ceil(this.element.clientHeight / this.height) + 2 * AROUND;
    const end = Math.min(this.count, top + seen);
    for (const [index, row] of this.rows) if (index < top || index >= end) this.drop(index, row);
    for (let index = top; index < end; index++) if (!this.rows.has(index)) this.place(index);
  }

  drop(index, row) {
    row.remove();
    this.rows.delete(index);
  }

  place(index) {
    const page = Math.floor(index / PAGE);
    const known = this.pages.get(page);
    if (known === undefined) {
      const reading = this.load(page * PAGE, Math.min(this.count, (page + 1) * PAGE) - 1);
      this.pages.set(page, reading);
      quietly(async () => {
        const rows = await reading;
        if (this.pages.get(page) === reading) this.pages.set(page, rows);
        this.schedule();
      })();
      return;
    }
    if (known instanceof Promise || known[index % PAGE] === undefined) return;
    const { kind, cells } = this.draw(known[index % PAGE], index);
    const row = el("div", { class: `row ${kind}`, role: "option", id: `${this.element.id}-${index}` }, cells);
    row.dataset.index = index;
    row.setAttribute("aria-setsize", this.count);
    row.setAttribute("aria-posinset", index + 1);
    row.setAttribute("aria-selected", String(index === this.selected));
    row.style.top = `${index * this.height}px`;
    this.rows.set(index, row);
    this.space.append(row);
    if (index === this.selected) this.element.setAttribute("aria-activedescendant", row.id);
  }

  /** Selects a row, brings it into view, and tells. */
  select(index, center = true) {
    if (!this.count) return;
    index = Math.max(0, Math.min(this.count - 1, index));
    this.rows.get(this.selected)?.setAttribute("aria-selected", "false");
    this.selected = index;
    this.rows.get(index)?.setAttribute("aria-selected", "true");
    this.element.setAttribute("aria-activedescendant", `${this.element.id}-${index}`);
    const top = index * this.height;
    const { scrollTop, clientHeight } = this.element;
    if (center && (top < scrollTop || top > scrollTop + clientHeight - this.height)) {
      this.element.scrollTop = top - (clientHeight - this.height) / 2;
    } else if (top < scrollTop) this.element.scrollTop = top;
    else if (top > scrollTop + clientHeight - this.height) this.element.scrollTop = top - clientHeight + this.height;
    this.schedule();
    this.onSelect(index);
  }

  /** Keys that move the selection. */
  get keys() {
    return {
      j: () => this.select(this.selected + 1, false),
      k: () => this.select(this.selected - 1, false),
      ArrowDown: () => this.select(this.selected + 1, false),
      ArrowUp: () => this.select(this.selected - 1, false),
      g: () => this.select(0),
      G: () => this.select(this.count - 1),
    };
  }
}

/** The cells of an event: number, role, line, tokens. */
export function eventCells(seq, role, line, tokens) {
  return [
    el("span", { class: "seq" }, `#${seq}`),
    el("span", { class: "role" }, role),
    el("span", {}, line),
    el("span", { class: "n" }, tokens ? Number(tokens).toLocaleString("en-US") : ""),
  ];
}
