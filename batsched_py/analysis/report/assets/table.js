/* The table of results with its filters, the legend, and the list of runs. */

let sorting = null;

for (const row of data.rows) {
  row.box = element("input", { type: "checkbox", ariaLabel: `draw ${row.name}`, onchange: () => toggle(row) });
  row.chip = chip(row, row.name);
}
for (const each of data.recorded) each.chip = chip(each, "what was recorded in the log");

function chip(row, title) {
  const swatch = element("span", { className: "swatch" });
  return element("button", { className: "chip", title, onclick: () => toggle(row),
    onpointerenter: () => point(row), onpointerleave: () => point(null) }, swatch, "");
}

function toggle(row) {
  row.drawn = !row.drawn;
  drawMarks();
  redraw();
}

function point(row) {
  pointed = row;
  redraw();
}

/* Draw all rows where they are few. Else those of every value that has a colour, which have all else in common with
   the first row of the plan that has the recorded load. What was recorded is drawn if that is one log. */
function drawFirst() {
  const rows = shown();
  const first = rows.find((row) => row.axes.load === "1") ?? rows[0];
  for (const axis of differing) {
    const all = !manyRows() || axis === colourAxis();
    chosen.set(axis, new Set(all ? valuesOf(axis, rows).slice(0, MOST_ENTRIES) : [first.axes[axis]]));
  }
  drawChosen();
  for (const each of data.recorded) each.drawn = oneLog();
}

function drawChosen() {
  looks.clear();
  const drawn = new Set(chosenOf(shown()));
  for (const row of data.rows) row.drawn = drawn.has(row);
}

/* Names say no more than it takes to tell apart what is shown. */
function nameAll() {
  const common = oneLog() ? ["log"] : [];
  for (const row of data.rows) row.label = nameWithout(row, ...common) || row.name;
  for (const each of data.recorded) each.label = common.length ? "as recorded" : `${each.log} as recorded`;
  for (const row of [...data.rows, ...data.recorded]) row.chip.lastChild.textContent = row.label;
}

function drawFilters() {
  const groups = differing.map((axis) => {
    const values = [...new Set(data.rows.map((row) => row.axes[axis]))];
    if (axis === "log" || values.length > MOST_BUTTONS) return list(axis, values);
    return element("span", { className: "axis" }, axis, ...values.map((value) => {
      const button = element("button", { textContent: value ?? "none", onclick: () => filter(axis, value) });
      button.setAttribute("aria-pressed", String(filters.get(axis)?.has(value) ?? false));
      return button;
    }));
  });
  document.getElementById("filters").replaceChildren(...groups);
}

function filter(axis, value) {
  const values = filters.get(axis) ?? new Set();
  if (!values.delete(value)) values.add(value);
  letThrough(axis, values);
}

function letThrough(axis, values) {
  if (values.size) filters.set(axis, values);
  else filters.delete(axis);
  drawFirst();
  drawEverything();
}

/* A list of the values of an axis, of which one is picked or all are. */
function list(axis, values) {
  const [picked] = filters.get(axis) ?? [];
  const choice = choices(axis, values, filters.has(axis) ? picked : null);
  choice.onchange = () => letThrough(axis, new Set(choice.value === "all" ? [] : [values[choice.value]]));
  return element("label", { className: "axis" }, axis, choice);
}

/* A list of values and "all" of them, which is picked if none of them is. */
function choices(axis, values, picked) {
  const choice = element("select", {},
    element("option", { value: "all", textContent: `all ${values.length}` }),
    ...values.map((value, place) => element("option", { value: place, textContent: value ?? "none" })));
  choice.value = picked === null ? "all" : values.indexOf(picked);
  choice.dataset.axis = axis;
  return choice;
}

/* Whatever tells which runs are drawn, and in what colour. */
function drawMarks() {
  const dashes = manyRows() ? dashKey(shown().filter((row) => row.drawn)) : [];
  document.getElementById("drawn").replaceChildren(drawnInWords(), ...dashes);
  for (const row of [...data.rows, ...data.recorded]) {
    paintSwatch(row.chip.firstChild, row);
    row.chip.setAttribute("aria-pressed", String(row.drawn));
    if (row.box) {
      row.box.checked = row.drawn;
      row.box.style.accentColor = colourOf(row);
    }
  }
}

function drawLegend() {
  const again = (change) => () => {
    change();
    drawLegend();
    drawMarks();
    redraw();
  };
  const all = (drawn) => () => { for (const row of shown()) row.drawn = drawn; };
  const everything = () => {
    for (const axis of differing) chosen.set(axis, new Set(valuesOf(axis, shown())));
    drawChosen();
  };
  const button = (textContent, change) => element("button", { textContent, onclick: again(change) });
  const entries = manyRows()
    ? [...differing.map((axis) => axisEntries(axis, again)), button("all", everything), button("as at first", drawFirst)]
    : [...shown().map((row) => row.chip), button("all", all(true)), button("none", all(false))];
  document.getElementById("legend").replaceChildren(...shownRecorded().map((each) => each.chip), ...entries);
}

/* The values of an axis, which are switched on and off; one at a time or all, if they are many. */
function axisEntries(axis, again) {
  const values = valuesOf(axis, shown());
  const set = chosen.get(axis);
  if (values.length < 2) return "";
  if (values.length > MOST_ENTRIES) {
    const select = choices(axis, values, set.size === values.length ? null : [...set][0]);
    select.onchange = again(() => {
      chosen.set(axis, new Set(select.value === "all" ? values : [values[select.value]]));
      drawChosen();
    });
    return element("label", { className: "axis" }, axis, select);
  }
  const rows = shown();
  return element("span", { className: "axis" }, axis, ...values.map((value) => {
    const entry = element("button", { className: "chip value", onclick: again(() => {
      if (!set.delete(value)) set.add(value);
      drawChosen();
    }) }, value ?? "none");
    entry.setAttribute("aria-pressed", String(set.has(value)));
    if (axis === colourAxis()) {
      const swatch = element("span", { className: "swatch" });
      paint(swatch, colourOf(rows.find((row) => row.axes[axis] === value)), []);
      entry.prepend(swatch);
    }
    return entry;
  }));
}

/* What is drawn, in words. */
function drawnInWords() {
  const rows = shown(), drawn = rows.filter((row) => row.drawn);
  if (drawn.length === rows.length) return `All ${rows.length} rows are drawn.`;
  const parts = differing.filter((axis) => valuesOf(axis, rows).length > 1).map((axis) => {
    const values = valuesOf(axis, drawn), count = valuesOf(axis, rows).length;
    if (values.length === count) return `every ${axis}`;
    return values.length > 3 ? `${values.length} of ${count} values of ${axis}` : `${axis} ${values.join(", ")}`;
  });
  const which = drawn.length ? `: ${parts.join("; ")}` : "";
  return `${drawn.length} of ${rows.length} rows are drawn${which}. Choose others here, or by the boxes of the table.`;
}

/* --- results --- */

function sorted(rows) {
  if (!sorting) return [...rows].sort((a, b) => a.group - b.group);
  const { column, axis, down } = sorting;
  const value = (row) => row.cells[column]?.[0] ?? null;
  const compare = axis
    ? (a, b) => (a.axes[axis] ?? "").localeCompare(b.axes[axis] ?? "", "en", { numeric: true })
    : (a, b) => value(a) - value(b);
  const known = rows.filter((row) => axis || value(row) !== null).sort((a, b) => compare(a, b) * (down ? -1 : 1));
  return [...known, ...rows.filter((row) => !known.includes(row))];
}

/* Whether a row is the first of those that may be compared, which lie together unless they are sorted. */
function begins(row, before) {
  return !sorting && before !== undefined && row.group !== before.group;
}

function heading(text, title, by) {
  const same = sorting && sorting.column === by.column && sorting.axis === by.axis;
  const head = element("th", { textContent: text, title, className: by.axis ? "text" : "", onclick: () => {
    sorting = same && sorting.down ? null : { ...by, down: Boolean(same) };
    drawTable();
  } });
  if (same) head.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
  return head;
}

function intervalText(column, row) {
  const [, low, high] = row.cells[column.name] ?? [];
  if (low === undefined || low === null) return "";
  const ends = [low, high].map((end) => withDecimals(end / column.scale, column.decimals));
  return `[${ends.join(", ")}]`;
}

function cellText(column, row) {
  const mean = row.cells[column.name]?.[0] ?? null;
  return mean === null ? "–" : withDecimals(mean / column.scale, column.decimals) + (row.unstable ? "†" : "");
}

function drawTable() {
  const rows = sorted(shown());
  document.querySelector("#results thead").replaceChildren(element("tr", {},
    element("th"),
    ...headings.map((axis) => heading(axis, "", { axis })),
    ...data.columns.map((column) => {
      const unit = column.unit ? ` (${column.unit})` : "";
      return heading(spaced(column.name) + unit, column.formula, { column: column.name });
    })));
  const room = new Map(data.columns.map((column) => [column, Math.max(...rows.map((row) => intervalText(column, row).length))]));
  document.querySelector("#results tbody").replaceChildren(...rows.map((row, place) =>
    element("tr", { className: begins(row, rows[place - 1]) ? "first" : "",
      title: row.unstable ? `${row.name}: no steady state: ${row.unstable}` : row.name, onpointerenter: () => point(row), onpointerleave: () => point(null) },
      element("td", { className: "pick" }, row.box),
      ...headings.map((axis) => element("td", { className: "text", textContent: row.axes[axis] ?? "" })),
      ...data.columns.map((column) => {
        const text = cellText(column, row);
        const cell = element("td", { textContent: text, className: row.best.includes(column.name) ? "best" : "" });
        if (room.get(column)) {
          const half = element("span", { className: "half", textContent: intervalText(column, row) });
          half.style.width = `${room.get(column)}ch`;
          cell.append(half);
        }
        return cell;
      }))));
}

/* --- runs --- */

function drawRuns() {
  document.querySelector("#runs tbody").replaceChildren(...data.runs.map((run) =>
    element("tr", {},
      element("td", { className: "text", textContent: run.name }),
      element("td", { className: "text links" }, ...Object.entries(run.links).map(([name, href]) =>
        element("a", { href, textContent: name }))),
      element("td", { className: "text remark", textContent: run.remark }))));
}
