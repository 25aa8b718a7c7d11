/* Which colours and dashes rows have, and what these stand for. */

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

/* For each list of common axes, the places of all rows in the palette; forgotten when others are chosen. */
const looks = new Map();

/* Dashes are few, so those that are chosen get them first. */
function look(row, ...common) {
  const key = common.join();
  if (!looks.has(key)) {
    const axis = colourAxis(...common), values = valuesOf(axis);
    const rows = [...chosenOf(shown(...common), ...common), ...data.rows];
    const names = [...new Set(rows.map((each) => dashName(each, ...common)))];
    looks.set(key, data.rows.map((each) => {
      const colour = values.indexOf(each.axes[axis]), dashes = names.indexOf(dashName(each, ...common));
      return (colour % NB_COLOURS) + NB_COLOURS * (dashes + Math.floor(colour / NB_COLOURS));
    }));
  }
  return looks.get(key)[row.place];
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
