/* Which rows and runs are shown at present. */

const DRAWN_AT_FIRST = 8;
/* An axis with more values than this is filtered by a list to choose from, instead of a button for each. */
const MOST_BUTTONS = 8;

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

function colourOf(row) {
  return row.place === undefined ? css("--grey") : paletteColour(row.configuration);
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
