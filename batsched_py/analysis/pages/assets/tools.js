"use strict";

/* What all scripts of a page need: its data, its colours, new elements, and numbers as text. */

const data = JSON.parse(document.getElementById("data").textContent);

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function element(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

/* --- colours --- */

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const NB_COLOURS = 8;
const DASHES = [[], [7, 3], [2, 3], [10, 3, 2, 3]];

/* Eight colours that everybody can tell apart; then the same ones again, with other dashes. */
function paletteColour(place) {
  return css(`--c${place % NB_COLOURS}`);
}

function paletteDash(place) {
  return DASHES[Math.floor(place / NB_COLOURS) % DASHES.length];
}

/* --- numbers --- */

/* What is shown as 0 has no sign. */
function withDecimals(value, decimals) {
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  const text = value.toLocaleString("en", digits);
  return text.replace("-", /[1-9]/.test(text) ? "−" : "");
}

function number(value) {
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-3) return value.toExponential(1).replace(/-/g, "−");
  const decimals = Number.isInteger(value) || size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3;
  return withDecimals(value, decimals);
}

const TIMES = [[86400, "days", "day"], [3600, "hours", "hour"], [60, "minutes", "minute"], [1, "seconds", "second"]];

/* The unit of time in which values up to so many seconds read best. */
function timeUnit(seconds) {
  return TIMES.find(([unit]) => seconds >= 3 * unit) ?? TIMES[3];
}
