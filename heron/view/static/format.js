// Numbers with units, as people say them.

export function bytes(n) {
  let value = n;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(value) < 1024) return unit === "B" ? `${Math.round(value)} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} TiB`;
}

export function seconds(n) {
  const size = Math.abs(n);
  if (size >= 1) return `${n.toFixed(2)} s`;
  if (size >= 1e-3) return `${(n * 1e3).toFixed(1)} ms`;
  if (size >= 1e-6 || n === 0) return `${(n * 1e6).toFixed(size < 1e-5 ? 1 : 0)} µs`;
  return `${(n * 1e9).toFixed(0)} ns`;
}

export function count(n) {
  let value = n;
  for (const unit of ["", "k", "M", "G", "T", "P"]) {
    if (Math.abs(value) < 1000) return `${Number(value.toPrecision(3))}${unit}`;
    value /= 1000;
  }
  return `${value.toPrecision(3)}E`;
}

export const whole = (n) => n.toLocaleString("en");

export const plural = (n, word) => `${whole(n)} ${word}${n === 1 ? "" : "s"}`;

/** A stable colour for a word. */
export function tint(word, dark) {
  let hash = 7;
  for (let n = 0; n < word.length; n++) hash = (hash * 31 + word.charCodeAt(n)) | 0;
  const hue = ((hash % 360) + 360) % 360;
  return `hsl(${hue} ${dark ? 38 : 62}% ${dark ? 34 : 84}%)`;
}
