"use strict";

/* What the page knows, and what of it is shown at present. */

const data = JSON.parse(document.getElementById("data").textContent);
const DRAWN_AT_FIRST = 8;
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#c98a00", "#56b4e9", "#7a5195", "#8c6d31"];
const DARK = ["#4ea3e0", "#ff8a4c", "#35c79a", "#e8a0c8", "#f0bf4c", "#9bd6ff", "#b69cf0", "#c8b277"];
const DASHES = [[], [7, 3], [2, 3], [10, 3, 2, 3]];
/* An axis with more values than this is filtered by a list to choose from, instead of a button for each. */
const MOST_BUTTONS = 8;
const dark = window.matchMedia("(prefers-color-scheme: dark)");

const axes = [...new Set(data.rows.flatMap((row) => Object.keys(row.axes)))];
const differing = axes.filter((axis) => new Set(data.rows.map((row) => row.axes[axis])).size > 1);
const headings = differing.length ? differing : axes;

/* What a row is called among those that have the same values on some axes. */
function nameWithout(row, ...common) {
  const telling = headings.filter((axis) => !common.includes(axis));
  return telling.map((axis) => row.axes[axis]).filter(Boolean).join(" · ");
}

const logs = new Set(data.rows.map((row) => row.axes.log));
/* What is simulated has the same colour in every log. */
const configurations = [...new Set(data.rows.map((row) => nameWithout(row, "log")))];
data.rows.forEach((row, place) => {
  row.place = place;
  row.configuration = configurations.indexOf(nameWithout(row, "log"));
});

/* For each axis that is filtered, the values that are let through; of several logs, the first is picked. */
const filters = new Map(logs.size > 1 ? [["log", new Set([data.rows[0].axes.log])]] : []);
/* For each horizontal axis that is zoomed, the part of it that is shown. */
const zooms = new Map();
/* The run that stands out for the moment. */
let pointed = null;

/* The rows that pass all filters but those on some axes. */
function shown(...unfiltered) {
  const used = [...filters].filter(([axis]) => !unfiltered.includes(axis));
  return data.rows.filter((row) => used.every(([axis, values]) => values.has(row.axes[axis])));
}

/* Whether one log alone is shown, so that names need not tell which. */
function oneLog() {
  return new Set(shown().map((row) => row.axes.log)).size < 2;
}

function shownRecorded() {
  const present = new Set(shown().map((row) => row.axes.log));
  return data.recorded.filter((each) => present.has(each.log));
}

/* Eight colours that everybody can tell apart; then the same ones again, with other dashes. */
function paletteColour(place) {
  const palette = dark.matches ? DARK : LIGHT;
  return palette[place % palette.length];
}

function paletteDash(place) {
  return DASHES[Math.floor(place / LIGHT.length) % DASHES.length];
}

function colourOf(row) {
  return row.place === undefined ? css("--recorded") : paletteColour(row.configuration);
}

function dashOf(row) {
  return row.place === undefined ? [] : paletteDash(row.configuration);
}

/* The mark of a run: full, or dashed like its line. */
function paintSwatch(swatch, row) {
  const dashed = dashOf(row).length > 0;
  swatch.style.background = dashed ? "none" : colourOf(row);
  swatch.style.border = dashed ? `2px dashed ${colourOf(row)}` : "none";
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function element(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

/* --- numbers --- */

function withDecimals(value, decimals) {
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return value.toLocaleString("en", digits).replace("-", "−");
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
