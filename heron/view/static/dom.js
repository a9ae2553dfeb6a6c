// Elements. Text goes into text nodes only: names and metadata of programs may hold anything.

/** An element: h("div.class", {title, onclick, …}, ...children). Children are nodes, text, or lists of them. */
export function h(what, props = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElement(tag || "div"), classes, props, children);
}

/** The same for SVG. */
export function s(what, props = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), classes, props, children);
}

function fill(element, classes, props, children) {
  for (const name of classes) element.classList.add(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") element.style.cssText = value;
    else if (key === "data") Object.assign(element.dataset, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

/** Put other children into an element. */
export function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

let tip = null;

/** Show a note at the pointer; nothing hides it. */
export function note(event, ...children) {
  if (!children.length) {
    tip?.remove();
    tip = null;
    return;
  }
  if (!tip) document.body.append((tip = h("div.tip", { role: "tooltip" })));
  put(tip, ...children);
  const box = tip.getBoundingClientRect();
  const x = event.clientX + 14 + box.width > innerWidth ? event.clientX - box.width - 10 : event.clientX + 14;
  const y = event.clientY + 14 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 14;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, y)}px`;
}

/** A canvas that fills its parent, with the sharpness of the screen. draw(context, width, height) on every change. */
export class Canvas {
  constructor(draw, props = {}) {
    this.draw = draw;
    this.element = h("canvas", { tabindex: 0, ...props });
    this.waiting = false;
    new ResizeObserver(() => this.fit()).observe(this.element);
  }

  fit() {
    const box = this.element.getBoundingClientRect();
    const scale = devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    this.element.width = Math.round(box.width * scale);
    this.element.height = Math.round(box.height * scale);
    this.paint();
  }

  /** Draw before the next frame, once however often it is asked for. */
  again() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }

  paint() {
    if (!this.width) return;
    const context = this.element.getContext("2d");
    const scale = devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.draw(context, this.width, this.height);
  }

  at(event) {
    const box = this.element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
}

/** A colour of the style sheet, by its name. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
