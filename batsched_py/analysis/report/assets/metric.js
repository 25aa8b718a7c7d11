/* A metric of the table against an axis of the plan, such as the load; intervals are those of the table. */

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

  /* A line for each combination of the other axes: its points along this one, where the metric is known. */
  lines() {
    const axis = this.over.value, { name, scale } = data.columns[this.metric.value];
    const values = [...new Set(shown().map((row) => row.axes[axis] ?? "none"))];
    this.names = values.every((value) => Number.isFinite(Number(value))) ? null : values;
    const at = (value) => (this.names ? this.names.indexOf(value) : Number(value));
    const lines = new Map();
    for (const row of shown()) {
      const [mean, half] = row.cells[name] ?? [null, null];
      if (mean === null) continue;
      const label = nameWithout(row, axis, ...(oneLog() ? ["log"] : []));
      if (!lines.has(label)) lines.set(label, { label, place: lines.size, points: [] });
      lines.get(label).points.push({ x: at(row.axes[axis] ?? "none"), y: mean / scale, half: (half ?? 0) / scale });
    }
    for (const { points } of lines.values()) points.sort((a, b) => a.x - b.x);
    return [...lines.values()];
  }

  draw() {
    this.drawn = this.element.hidden ? [] : this.lines();
    const points = this.drawn.flatMap((line) => line.points);
    if (!points.length) return;
    const { name, unit } = data.columns[this.metric.value];
    const ends = (values) => [Math.min(...values), Math.max(...values)];
    const [left, right] = ends(points.map(({ x }) => x));
    const [low, high] = ends(points.flatMap(({ y, half }) => [y - half, y + half]));
    const room = (right - left) / 20 || 0.5;
    const linear = (label) => ({ label, unit: "", scale: "linear" });
    const x = this.names ? new Names(this.over.value, this.names)
      : new Scale(linear(this.over.value), left - room, right + room);
    const y = new Scale(linear(spaced(name) + (unit ? ` (${unit})` : "")), Math.min(0, low), high || 1);
    const context = this.begin(x, y, 4);
    for (const line of this.drawn) this.drawLine(context, line);
    this.end(context);
  }

  /* Numbers are joined by a line; above a name, points stand side by side. */
  drawLine(context, { place, points }) {
    const shift = this.names ? ((place + 1) / (this.drawn.length + 1) - 0.5) * 0.8 : 0;
    context.strokeStyle = context.fillStyle = paletteColour(place);
    context.lineWidth = 1.6;
    context.setLineDash(paletteDash(place));
    context.beginPath();
    if (!this.names) for (const { x, y } of points) context.lineTo(this.toX(x), this.toY(y));
    context.stroke();
    context.setLineDash([]);
    for (const point of points) {
      point.at = { x: this.toX(point.x + shift), y: this.toY(point.y) };
      context.beginPath();
      context.moveTo(point.at.x, this.toY(point.y - point.half));
      context.lineTo(point.at.x, this.toY(point.y + point.half));
      context.stroke();
      context.beginPath();
      context.arc(point.at.x, point.at.y, 3.5, 0, 2 * Math.PI);
      context.fill();
    }
  }

  find(x, y) {
    let nearest = null;
    for (const { label, place, points } of this.drawn)
      for (const { at, x: across, y: up, half } of points) {
        const away = Math.hypot(at.x - x, at.y - y);
        if (nearest && away >= nearest.away) continue;
        const text = `${number(up)}${half ? ` ± ${number(half)}` : ""} at ${this.x.tell(across)}`;
        nearest = { ...at, away, name: label, colour: paletteColour(place), text };
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
