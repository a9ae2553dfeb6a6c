// A list of which only the rows in sight exist: 100,000 rows scroll as ten do.

import { h } from "./dom.js";

export class List {
  /**
   * draw(index): the row's element. height: pixels of a row. onpick(index): a click, or Enter on the picked row.
   * kind: classes of the list.
   */
  constructor({ draw, height = 18, kind = "text", onpick = null, label = "" }) {
    this.draw = draw;
    this.height = height;
    this.onpick = onpick;
    this.count = 0;
    this.picked = -1;
    this.rows = h("div.rows");
    this.element = h(`div.list.${kind}`, { tabindex: 0, role: "list", "aria-label": label, onkeydown: (e) => this.key(e) }, this.rows);
    this.shown = new Map();
    this.element.addEventListener("scroll", () => this.again(), { passive: true });
    this.element.addEventListener("click", (e) => this.click(e));
    new ResizeObserver(() => this.again()).observe(this.element);
  }

  /** Show so many rows, all drawn anew. */
  reset(count) {
    this.count = count;
    this.picked = -1;
    this.rows.style.height = `${count * this.height}px`;
    this.redraw();
  }

  /** Draw what is in sight again: marks have changed. */
  redraw() {
    this.rows.replaceChildren();
    this.shown.clear();
    this.render();
  }

  again() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.render();
    });
  }

  render() {
    const top = this.element.scrollTop;
    const first = Math.max(0, Math.floor(top / this.height) - 8);
    const last = Math.min(this.count, Math.ceil((top + (this.element.clientHeight || 800)) / this.height) + 8);
    for (const [n, row] of this.shown) {
      if (n < first || n >= last) {
        row.remove();
        this.shown.delete(n);
      }
    }
    for (let n = first; n < last; n++) {
      if (this.shown.has(n)) continue;
      const row = this.draw(n);
      row.classList.add("row");
      row.classList.toggle("pick", n === this.picked);
      row.style.height = `${this.height}px`;
      row.style.top = `${n * this.height}px`;
      row.setAttribute("role", "listitem");
      row.dataset.row = n;
      this.shown.set(n, row);
      this.rows.append(row);
    }
  }

  click(event) {
    const row = event.target.closest(".row");
    if (row) this.pick(Number(row.dataset.row), event);
  }

  /** Mark a row as the picked one, and tell. */
  pick(n, event = null) {
    this.mark(n);
    this.onpick?.(n, event);
  }

  mark(n) {
    this.shown.get(this.picked)?.classList.remove("pick");
    this.picked = n;
    this.shown.get(n)?.classList.add("pick");
  }

  /** Scroll so that a row is in sight: in the middle if it was not. */
  reveal(n, always = false) {
    const top = n * this.height;
    const { scrollTop, clientHeight } = this.element;
    if (always || top < scrollTop + this.height || top > scrollTop + clientHeight - 2 * this.height) {
      this.element.scrollTop = top - clientHeight / 2;
    }
    this.render();
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 30, PageUp: -30, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Enter" && this.picked >= 0) this.onpick?.(this.picked, event);
    if (step === undefined || !this.count) return;
    event.preventDefault();
    const n = Math.max(0, Math.min(this.count - 1, this.picked + step));
    this.reveal(n);
    this.pick(n, event);
  }
}
