// The frame of the page: header, views, keys.

import { decisions } from "./decisions.js";
import { devices } from "./devices.js";
import { difference } from "./difference.js";
import { h, note, put } from "./dom.js";
import { graph } from "./graph.js";
import { close, inspector } from "./inspector.js";
import { kernels } from "./kernels.js";
import { memoryView } from "./memory.js";
import { overview } from "./overview.js";
import { closeDialog, isOpen, openKeys, openPalette } from "./palette.js";
import { program } from "./program.js";
import { rooflineView } from "./roofline.js";
import { data, go, isDark, onPlace, place, settings } from "./state.js";
import { timeline } from "./timeline.js";

const views = [overview, timeline, program, graph, kernels, memoryView, rooflineView, decisions, devices, difference].filter((v) => !v.isEmpty?.());
const links = views.map((v) => h("a", { href: `#${v.name}` }, h("span", {}, v.title), h("span.dim", {}, v.hint?.() ?? "")));
const main = h("main");
let current = null;

function theme(name) {
  document.documentElement.dataset.theme = name;
  settings.set("theme", name);
}

function toggleTheme() {
  theme(isDark() ? "light" : "dark");
  show(place());
}

function show([name, ...rest]) {
  note();
  const view = views.find((v) => v.name === name) ?? views[0];
  current = view;
  links.forEach((link, n) => {
    link.classList.toggle("on", views[n] === view);
    if (views[n] === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  const content = view.show(rest);
  put(main, h("div.view", {}, content), inspector);
}

function header() {
  const o = data.overview;
  return h(
    "header",
    {},
    h("span.title", {}, o.module),
    o.target && h("span.chip", {}, o.target),
    Object.entries(o.options).map(([key, value]) => h("span.chip", {}, `${key}=${value}`)),
    h("button.find", { onclick: openPalette }, h("span", {}, "search"), h("kbd", {}, "/")),
    h("button", { onclick: toggleTheme, title: "d" }, "dark / light"),
    h("button", { onclick: openKeys, title: "keys", "aria-label": "keys" }, "?"),
  );
}

function key(event) {
  if (event.defaultPrevented) return undefined;
  if (event.key === "Escape") return isOpen() ? closeDialog() : document.activeElement?.tagName === "INPUT" ? document.activeElement.blur() : close();
  if ((event.ctrlKey || event.metaKey) && event.key === "k") {
    event.preventDefault();
    return openPalette();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT/.test(event.target.tagName)) return undefined;
  const keys = { "/": openPalette, "?": openKeys, d: toggleTheme, f: () => current.search?.()?.focus(), ...current.keys };
  const number = Number(event.key);
  const action = keys[event.key] ?? (number >= 1 && number <= views.length ? () => go([views[number - 1].name]) : null);
  if (action) {
    event.preventDefault();
    action();
  }
  return undefined;
}

theme(settings.get("theme", matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
document.body.append(header(), h("nav", { "aria-label": "views" }, links, h("div.foot", {}, `heron ${data.heron}`)), main);
addEventListener("keydown", key);
onPlace(show);
show(place());
