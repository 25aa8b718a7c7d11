/* Which rows and runs are shown at present. */

/* The legend has no more entries than this; where there are more rows, it has the values of each axis. */
const MOST_ENTRIES = 12;
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

/* The axis whose values have colours, the same ones in every figure: the scheduler, else the first that differs.
   What is common to all that is compared needs none, nor do logs. */
function colourAxis(...common) {
  const telling = differing.filter((axis) => axis !== "log" && !common.includes(axis));
  return telling.includes("scheduler") ? "scheduler" : telling[0];
}

/* What a row is called besides the value that its colour stands for; each such name has its dashes. */
function dashName(row, ...common) {
  return nameWithout(row, "log", colourAxis(...common), ...common);
}

/* For each list of common axes, the places of all rows in the palette. */
const looks = new Map();

function look(row, ...common) {
  const key = common.join();
  if (!looks.has(key)) {
    const values = valuesOf(colourAxis(...common));
    const names = [...new Set(data.rows.map((each) => dashName(each, ...common)))];
    looks.set(key, data.rows.map((each) => {
      const colour = values.indexOf(each.axes[colourAxis(...common)]), dashes = names.indexOf(dashName(each, ...common));
      return (colour % NB_COLOURS) + NB_COLOURS * (dashes + Math.floor(colour / NB_COLOURS));
    }));
  }
  return looks.get(key)[row.place];
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
  return shown().length > MOST_ENTRIES;
}

/* Whether one log alone is shown, so that names need not tell which. */
function oneLog() {
  return new Set(shown().map((row) => row.axes.log)).size < 2;
}

function shownRecorded() {
  const present = new Set(shown().map((row) => row.axes.log));
  return data.recorded.filter((each) => present.has(each.log));
}

function colourOf(row, ...common) {
  return row.place === undefined ? css("--grey") : paletteColour(look(row, ...common));
}

function dashOf(row, ...common) {
  return row.place === undefined ? [] : paletteDash(look(row, ...common));
}

/* The mark of a run: full, or dashed like its line. */
function paintSwatch(swatch, row) {
  paint(swatch, colourOf(row), dashOf(row));
}

function paint(swatch, colour, dashes) {
  swatch.style.background = dashes.length ? "none" : colour;
  swatch.style.border = dashes.length ? `2px ${dashes[0] > 2 ? "dashed" : "dotted"} ${colour}` : "none";
}

/* Marks with their names, at most as many as the legend may have. */
function marked(entries) {
  const names = [...entries].slice(0, MOST_ENTRIES).map(([name, [colour, dashes]]) => {
    const swatch = element("span", { className: "swatch" });
    paint(swatch, colour, dashes);
    return element("span", { className: "name" }, swatch, name);
  });
  return entries.size > MOST_ENTRIES ? [...names, `and ${entries.size - MOST_ENTRIES} more`] : names;
}

/* What colours stand for among some rows. */
function colourKey(rows, ...common) {
  const axis = colourAxis(...common);
  if (!axis) return [];
  return marked(new Map(rows.map((row) => [row.axes[axis] ?? "none", [colourOf(row, ...common), []]])));
}

/* What dashes stand for among some rows; nothing if all have the same. */
function dashKey(rows, ...common) {
  const entries = new Map(rows.map((row) => [dashName(row, ...common), [css("--faint"), dashOf(row, ...common)]]));
  return entries.size > 1 ? marked(entries) : [];
}

function key(rows, ...common) {
  return [...colourKey(rows, ...common), ...dashKey(rows, ...common)];
}
