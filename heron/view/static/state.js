// The document, and the place in it: an address after # that can be copied and sent.

export const data = JSON.parse(document.getElementById("data").textContent);

const listeners = [];

/** Go to a place such as ["program", 12, "add.4"]; `replace` leaves no step in the history. */
export function go(parts, replace = false) {
  const hash = `#${parts.map((p) => encodeURIComponent(p).replaceAll("%3A", ":")).join("/")}`;
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
  } else {
    location.hash = hash;
  }
}

/** The parts of the address. */
export function place() {
  return location.hash
    .slice(1)
    .split("/")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}

/** Tell about every change of the address. */
export function onPlace(listener) {
  listeners.push(listener);
}

addEventListener("hashchange", () => listeners.forEach((f) => f(place())));

/** Settings that outlive the page, where the browser lets pages from files have any. */
export const settings = {
  get(key, otherwise) {
    try {
      return localStorage.getItem(`heron.${key}`) ?? otherwise;
    } catch {
      return otherwise;
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(`heron.${key}`, value);
    } catch {
      // a private window: the setting lasts as long as the page
    }
  },
};

export const isDark = () => document.documentElement.dataset.theme === "dark";
