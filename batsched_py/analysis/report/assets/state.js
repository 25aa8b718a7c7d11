/* Which rows and runs are shown at present. */

/* The legend has no more entries than this; where there are more rows, it has the values of each axis. */
const MOST_ENTRIES = 12;
/* No more curves than this are drawn in one figure at first. */
const MOST_CURVES = 6;
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
data.rows.forEach((row, place) => { row.place = place; });

function valuesOf(axis, rows = data.rows) {
  return [...new Set(rows.map((row) => row.axes[axis]))];
}

/* For each axis that is filtered, the values that are let through; of several logs, the first is picked. */
const filters = new Map(logs.size > 1 ? [["log", new Set([data.rows[0].axes.log])]] : []);
/* The run that stands out for the moment. */
let pointed = null;

/* The rows that pass all filters but those on some axes. */
function shown(...unfiltered) {
  const used = [...filters].filter(([axis]) => !unfiltered.includes(axis));
  return data.rows.filter((row) => used.every(([axis, values]) => values.has(row.axes[axis])));
}

/* The values that are drawn, by axis. */
const chosen = new Map();

/* Those of some rows whose values are chosen on all axes but some. */
function chosenOf(rows, ...unfiltered) {
  const used = [...chosen].filter(([axis]) => !unfiltered.includes(axis));
  return rows.filter((row) => used.every(([axis, values]) => values.has(row.axes[axis])));
}

/* Whether there are so many rows that the legend has the values of each axis, instead of the rows. */
function manyRows() {
  return shown().length > MOST_CURVES;
}

/* Whether one log alone is shown, so that names need not tell which. */
function oneLog() {
  return new Set(shown().map((row) => row.axes.log)).size < 2;
}

function shownRecorded() {
  const present = new Set(shown().map((row) => row.axes.log));
  return data.recorded.filter((each) => present.has(each.log));
}
