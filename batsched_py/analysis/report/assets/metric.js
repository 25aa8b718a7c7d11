/* A metric of the table against an axis of the plan, such as the load; intervals are those of the table. */

/* From this ratio of the largest mean to the smallest one on, the scale is logarithmic. */
const WIDE = 20;

class Metric extends Plot {
  constructor() {
    super({ label: "" });
    [this.metric, this.over] = ["metric", "metric-axis"].map((id) => document.getElementById(id));
    this.metric.append(...data.columns.map(({ name }, place) => element("option", { value: place, textContent: spaced(name) })));
    this.over.append(...differing.filter((axis) => axis !== "log").map((axis) => element("option", { value: axis, textContent: axis })));
    if (differing.includes("load")) this.over.value = "load";
    this.metric.onchange = this.over.onchange = () => this.draw();
    this.element = document.getElementById("metrics");
    this.element.hidden = !this.over.options.length || !data.columns.length;
    document.getElementById("metric-chart").append(this.canvas, this.tip);
  }

  /* A line for each combination of the other axes that is chosen: its points along this one, where it is known. */
  lines() {
    const axis = this.over.value, { name, scale } = data.columns[this.metric.value];
    const rows = chosenOf(shown(), axis);
    const values = valuesOf(axis, rows).map((value) => value ?? "none");
    this.names = values.every((value) => Number.isFinite(Number(value))) ? null : values;
    const at = (value) => (this.names ? this.names.indexOf(value) : Number(value));
    const lines = new Map();
    for (const row of rows) {
      const [mean, least, most] = row.cells[name] ?? [null, null, null];
      if (mean === null) continue;
      const label = nameWithout(row, axis, ...(oneLog() ? ["log"] : []));
      if (!lines.has(label)) lines.set(label, { label, row, place: lines.size, points: [] });
      lines.get(label).points.push({ x: at(row.axes[axis] ?? "none"), y: mean / scale, unstable: row.unstable,
        least: (least ?? mean) / scale, most: (most ?? mean) / scale });
    }
    for (const { points } of lines.values()) points.sort((a, b) => a.x - b.x);
    return [...lines.values()];
  }

  draw() {
    this.drawn = this.element.hidden ? [] : this.lines();
    const points = this.drawn.flatMap((line) => line.points);
    this.canvas.hidden = !points.length;
    document.getElementById("metric-names").replaceChildren(...key(this.drawn.map(({ row }) => row), this.over.value));
    if (!points.length) return;
    const { name, unit } = data.columns[this.metric.value];
    const xs = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b);
    const [left, right] = [xs[0], xs[xs.length - 1]];
    const room = (right - left) / 20 || 0.5;
    const ticks = xs.length > MOST_ENTRIES ? undefined : xs.map((value) => [value, String(value)]);
    const x = this.names ? new Names(this.over.value, this.names)
      : new Scale({ label: this.over.value, unit: "", scale: "linear", ticks }, left - room, right + room);
    const y = this.vertical(spaced(name) + (unit ? ` (${unit})` : ""), points);
    const context = this.begin(x, y, 4);
    for (const line of this.drawn) this.drawLine(context, line);
    this.end(context);
  }

  /* From 0 on; but slowdowns, and what differs widely, on a logarithmic scale. */
  vertical(label, points) {
    const means = points.map(({ y }) => y);
    const [least, most] = [Math.min(...means), Math.max(...means)];
    const high = Math.max(...points.map(({ most }) => most));
    if (least > 0 && (data.columns[this.metric.value].log || most > WIDE * least)) {
      const low = Math.min(...points.map(({ y, least }) => (least > 0 ? least : y)));
      return new Scale({ label, unit: "", scale: "log" }, Math.max(low, least / WIDE) / 1.1, high * 1.1);
    }
    const low = Math.min(0, ...points.map(({ least }) => least));
    return new Scale({ label, unit: "", scale: "linear" }, low, high || 1);
  }

  /* Numbers are joined by a line; above a name, points stand side by side. */
  drawLine(context, { row, place, points }) {
    const shift = this.names ? ((place + 1) / (this.drawn.length + 1) - 0.5) * 0.8 : 0;
    const bottom = this.y.low;
    context.strokeStyle = context.fillStyle = colourOf(row, this.over.value);
    context.lineWidth = 1.6;
    context.setLineDash(dashOf(row, this.over.value));
    context.beginPath();
    if (!this.names) for (const { x, y } of points) context.lineTo(this.toX(x), this.toY(y));
    context.stroke();
    context.setLineDash([]);
    for (const point of points) {
      point.at = { x: this.toX(point.x + shift), y: this.toY(point.y) };
      context.beginPath();
      context.moveTo(point.at.x, this.toY(Math.max(point.least, bottom)));
      context.lineTo(point.at.x, this.toY(point.most));
      context.stroke();
      context.beginPath();
      context.arc(point.at.x, point.at.y, 3.5, 0, 2 * Math.PI);
      context.fill();
    }
  }

  find(x, y) {
    let nearest = null;
    for (const { label, row, points } of this.drawn)
      for (const { at, x: across, y: up, least, most, unstable } of points) {
        const away = Math.hypot(at.x - x, at.y - y);
        if (nearest && away >= nearest.away) continue;
        const interval = most > least ? ` [${number(least)}, ${number(most)}]` : "";
        const text = `${number(up)}${interval} at ${this.x.tell(across)}${unstable ? "; no steady state" : ""}`;
        nearest = { ...at, away, name: label, colour: colourOf(row, this.over.value), text };
      }
    return nearest;
  }

  release() {
    this.drag = null;
    this.draw();
  }
}

function spaced(name) {
  return name.replace(/^nb_/, "").replaceAll("_", " ");
}
