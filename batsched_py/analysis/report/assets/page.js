"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8c6d31"];
const DRAWN_AT_FIRST = 8;

data.rows.forEach((row, place) => {
  row.colour = place < PALETTE.length ? PALETTE[place] : `hsl(${(place * 137.5) % 360} 60% 45%)`;
  row.drawn = place < DRAWN_AT_FIRST;
});

const chosen = new Map();
const shown = () => data.rows.filter((row) => [...chosen].every(([axis, value]) => row.axes[axis] === value));

function number(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumFractionDigits: size >= 1000 ? 0 : size >= 10 ? 1 : 3 });
}

/* Seconds read best in the largest unit that the whole column has at least one of. */
function scaleOf(column) {
  if (column.unit !== "s") return [1, column.unit];
  const largest = Math.max(...data.rows.map((row) => Math.abs(row.cells[column.name]?.[0] ?? 0)));
  return [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([unit]) => largest >= unit) ?? [1, "s"];
}

/* --- table --- */

const axes = [...new Set(data.rows.flatMap((row) => Object.keys(row.axes)))];
const varying = axes.filter((axis) => new Set(data.rows.map((row) => row.axes[axis])).size > 1);
let sorting = null;

function element(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

function drawFilters() {
  const groups = varying.map((axis) => {
    const values = [...new Set(data.rows.map((row) => row.axes[axis]))];
    return element("span", { className: "axis" }, axis, ...values.map((value) => {
      const button = element("button", { textContent: value, onclick: () => {
        if (chosen.get(axis) === value) chosen.delete(axis); else chosen.set(axis, value);
        drawEverything();
      } });
      button.setAttribute("aria-pressed", String(chosen.get(axis) === value));
      return button;
    }));
  });
  document.getElementById("filters").replaceChildren(...groups);
}

function drawTable() {
  const rows = shown();
  if (sorting) {
    const key = (row) => sorting.metric ? row.cells[sorting.metric]?.[0] ?? Infinity : row.axes[sorting.axis] ?? "";
    rows.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (sorting.down ? -1 : 1));
  }
  const heading = (text, title, sort, className = "") => {
    const head = element("th", { textContent: text, title, className, onclick: () => {
      const same = sorting && sorting.metric === sort.metric && sorting.axis === sort.axis;
      sorting = { ...sort, down: same ? !sorting.down : false };
      drawTable();
    } });
    if (sorting && sorting.metric === sort.metric && sorting.axis === sort.axis)
      head.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
    return head;
  };
  const scales = new Map(data.columns.map((column) => [column.name, scaleOf(column)]));
  document.querySelector("#results thead").replaceChildren(element("tr", {},
    element("th"),
    ...varying.map((axis) => heading(axis, "", { axis }, "text")),
    ...data.columns.map((column) => {
      const unit = scales.get(column.name)[1];
      return heading(column.name.replaceAll("_", " ") + (unit ? ` (${unit})` : ""), column.formula, { metric: column.name });
    }),
    element("th")));
  const best = new Map(data.columns.map((column) => {
    const values = rows.map((row) => row.cells[column.name]?.[0]).filter(Number.isFinite);
    if (!column.best || new Set(values).size < 2) return [column.name, null];
    return [column.name, column.best === "lowest" ? Math.min(...values) : Math.max(...values)];
  }));
  document.querySelector("#results tbody").replaceChildren(...rows.map((row) => {
    const box = element("input", { type: "checkbox", checked: row.drawn, ariaLabel: `draw ${row.name}`,
      onchange: () => { row.drawn = box.checked; drawFigures(); } });
    const swatch = element("span", { className: "swatch" });
    swatch.style.background = row.colour;
    const line = element("tr", { title: row.name },
      element("td", { className: "pick" }, box, swatch),
      ...varying.map((axis) => element("td", { className: "text", textContent: row.axes[axis] ?? "" })),
      ...data.columns.map((column) => {
        const [mean, half] = row.cells[column.name] ?? [null, null];
        const unit = scales.get(column.name)[0];
        const cell = element("td", { textContent: number(mean === null ? null : mean / unit) });
        if (half !== null && half !== undefined)
          cell.append(element("span", { className: "half", textContent: ` ± ${number(half / unit)}` }));
        if (mean !== null && mean === best.get(column.name)) cell.className = "best";
        return cell;
      }),
      element("td", { className: "links" }, ...Object.entries(row.links).map(([name, href]) =>
        element("a", { href, textContent: name }))));
    return line;
  }));
}

/* --- figures --- */

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const MARGIN = { left: 52, right: 10, top: 8, bottom: 34 };

function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [context, width, height];
}

function ticks(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const marks = [];
  for (let mark = Math.ceil(low / step) * step; mark <= high + step * 1e-9; mark += step) marks.push(mark);
  return marks;
}

class Chart {
  constructor(figure) {
    this.figure = figure;
    this.zoom = null;
    this.canvas = element("canvas");
    this.tip = element("div", { className: "tip" });
    const about = element("small", { textContent: ` ${figure.about}` });
    this.element = element("figure", {}, element("figcaption", {}, figure.title, about), this.canvas, this.tip);
    this.canvas.onpointerdown = (event) => { this.from = event.offsetX; this.to = event.offsetX; };
    this.canvas.onpointermove = (event) => this.hover(event);
    this.canvas.onpointerup = () => this.release();
    this.canvas.onpointerleave = () => { this.tip.style.display = "none"; this.release(); this.draw(); };
    this.canvas.ondblclick = () => { this.zoom = null; this.draw(); };
  }

  curves() {
    return shown().filter((row) => row.drawn && row.curves[this.figure.title]).map((row) => {
      const [xs, ys] = row.curves[this.figure.title];
      return { row, xs, ys };
    });
  }

  draw() {
    const [context, width, height] = fit(this.canvas);
    const curves = this.curves();
    context.clearRect(0, 0, width, height);
    if (!curves.length) return;
    let [left, right] = this.zoom ?? [
      Math.min(...curves.map(({ xs }) => xs[0])), Math.max(...curves.map(({ xs }) => xs[xs.length - 1]))];
    let low = Infinity, high = -Infinity;
    for (const { xs, ys } of curves)
      xs.forEach((x, place) => {
        if (x >= left && x <= right) { low = Math.min(low, ys[place]); high = Math.max(high, ys[place]); }
      });
    if (low > 0 && low < high * 0.6) low = 0;
    if (!(high > low)) { high = low + 1; }
    const room = [width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom];
    this.toX = (x) => MARGIN.left + ((x - left) / (right - left || 1)) * room[0];
    this.toY = (y) => MARGIN.top + (1 - (y - low) / (high - low)) * room[1];
    this.fromX = (pixel) => left + ((pixel - MARGIN.left) / room[0]) * (right - left);
    context.font = "11px system-ui, sans-serif";
    context.strokeStyle = css("--line");
    context.fillStyle = css("--faint");
    context.lineWidth = 1;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const mark of ticks(low, high, 5)) {
      const y = Math.round(this.toY(mark)) + 0.5;
      context.beginPath(); context.moveTo(MARGIN.left, y); context.lineTo(width - MARGIN.right, y); context.stroke();
      context.fillText(number(mark), MARGIN.left - 6, y);
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const mark of ticks(left, right, 6)) context.fillText(number(mark), this.toX(mark), height - MARGIN.bottom + 5);
    context.fillText(this.figure.x, MARGIN.left + room[0] / 2, height - 14);
    context.save();
    context.translate(9, MARGIN.top + room[1] / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(this.figure.y, 0, -4);
    context.restore();
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, MARGIN.top - 2, room[0], room[1] + 4);
    context.clip();
    for (const { row, xs, ys } of curves) {
      context.strokeStyle = row.colour;
      context.lineWidth = 1.6;
      context.beginPath();
      xs.forEach((x, place) => {
        if (place) context.lineTo(this.toX(x), this.toY(ys[place])); else context.moveTo(this.toX(x), this.toY(ys[place]));
      });
      context.stroke();
    }
    context.restore();
    if (this.from !== undefined && this.from !== this.to) {
      context.fillStyle = "rgba(128, 128, 128, .2)";
      context.fillRect(Math.min(this.from, this.to), MARGIN.top, Math.abs(this.to - this.from), room[1]);
    }
  }

  hover(event) {
    const curves = this.curves();
    if (!curves.length || !this.fromX) return;
    if (this.from !== undefined) { this.to = event.offsetX; this.draw(); return; }
    const x = this.fromX(event.offsetX);
    let nearest = null;
    for (const { row, xs, ys } of curves) {
      let place = xs.findIndex((value) => value >= x);
      if (place < 0) place = xs.length - 1;
      const away = Math.hypot(this.toX(xs[place]) - event.offsetX, this.toY(ys[place]) - event.offsetY);
      if (!nearest || away < nearest.away) nearest = { away, row, x: xs[place], y: ys[place] };
    }
    this.tip.textContent = `${nearest.row.name}: ${number(nearest.y)} ${this.figure.y} at ${number(nearest.x)} ${this.figure.x}`;
    this.tip.style.display = "block";
    this.tip.style.borderColor = nearest.row.colour;
    const room = this.element.clientWidth - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, room))}px`;
    this.tip.style.top = `${event.offsetY + 30}px`;
  }

  release() {
    if (this.from !== undefined && Math.abs(this.to - this.from) > 5) {
      const ends = [this.fromX(this.from), this.fromX(this.to)];
      this.zoom = [Math.min(...ends), Math.max(...ends)];
    }
    this.from = this.to = undefined;
    this.draw();
  }
}

const charts = data.figures
  .filter((figure) => data.rows.some((row) => row.curves[figure.title]))
  .map((figure) => new Chart(figure));
document.getElementById("figures").append(...charts.map((chart) => chart.element));

function drawFigures() {
  for (const chart of charts) chart.draw();
}

/* --- Gantt chart --- */

const ganttRun = document.getElementById("gantt-run");
const ganttCanvas = document.getElementById("gantt");

function drawGanttChoice() {
  const before = ganttRun.value;
  ganttRun.replaceChildren(...shown().map((row) => element("option", { value: row.name, textContent: row.name })));
  if ([...ganttRun.options].some((option) => option.value === before)) ganttRun.value = before;
  drawGantt();
}

function drawGantt() {
  const row = data.rows.find((candidate) => candidate.name === ganttRun.value);
  if (!row) return;
  const { rows, columns, busy } = row.gantt;
  const bytes = Uint8Array.from(atob(busy), (letter) => letter.charCodeAt(0));
  const colour = css("--busy").split(",").map(Number);
  ganttCanvas.width = columns;
  ganttCanvas.height = rows;
  const context = ganttCanvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let host = 0; host < rows; host++)
    for (let column = 0; column < columns; column++) {
      const to = ((rows - 1 - host) * columns + column) * 4;
      image.data.set([...colour, bytes[host * columns + column]], to);
    }
  context.putImageData(image, 0, 0);
  ganttCanvas.onpointermove = (event) => {
    const { width, height } = ganttCanvas.getBoundingClientRect();
    const host = Math.min(rows - 1, Math.max(0, rows - 1 - Math.floor((event.offsetY / height) * rows)));
    const column = Math.min(columns - 1, Math.max(0, Math.floor((event.offsetX / width) * columns)));
    const share = Math.round((bytes[host * columns + column] / 255) * 100);
    const name = rows === row.gantt.hosts ? `host ${host}` : `hosts around ${Math.round((host / rows) * row.gantt.hosts)}`;
    document.getElementById("gantt-value").textContent =
      `${name}, day ${number((column / columns) * row.gantt.days)}: ${share} % busy`;
  };
}

ganttRun.onchange = drawGantt;

function drawEverything() {
  drawFilters();
  drawTable();
  drawFigures();
  drawGanttChoice();
}

window.addEventListener("resize", drawFigures);
drawEverything();
