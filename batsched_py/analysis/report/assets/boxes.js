/* Box plots of a metric over repetitions: a box beside the name of each row that is drawn. */

const BOX_ROOM = 26;

class Boxes extends Plot {
  constructor() {
    super({ label: "" });
    this.metric = document.getElementById("box-metric");
    this.metric.append(...data.columns.map(({ name }, place) => element("option", { value: place, textContent: spaced(name) })));
    this.metric.onchange = () => this.draw();
    this.element = document.getElementById("repetitions");
    this.element.hidden = !data.rows.some((row) => Object.keys(row.spreads).length);
    document.getElementById("box-chart").append(this.canvas, this.tip);
  }

  /* What is drawn, the last row first, for names are counted upwards; figures are in the unit of the column. */
  boxes() {
    const { name, scale } = data.columns[this.metric.value];
    return shown().filter((row) => row.drawn && row.spreads[name]).reverse().map((row) => {
      const { count, beyond, ...marks } = row.spreads[name];
      const inUnit = Object.fromEntries(Object.entries(marks).map(([mark, value]) => [mark, value / scale]));
      return { row, count, beyond: beyond.map((value) => value / scale), ...inUnit };
    });
  }

  draw() {
    this.drawn = this.element.hidden ? [] : this.boxes();
    this.canvas.hidden = !this.drawn.length;
    if (!this.drawn.length) return;
    const { name, unit } = data.columns[this.metric.value];
    this.axis = { label: spaced(name) + (unit ? ` (${unit})` : ""), unit: "", scale: "linear" };
    const values = this.drawn.flatMap(({ low, high, beyond }) => [low, high, ...beyond]);
    const ends = zooms.get(this.axis.label) ?? [Math.min(0, ...values), Math.max(...values) || 1];
    this.canvas.style.height = `${60 + BOX_ROOM * this.drawn.length}px`;
    const context = this.begin(new Scale(this.axis, ...ends), new Names("", this.drawn.map(({ row }) => row.label)), 4);
    this.drawn.forEach((box, place) => this.drawBox(context, box, place));
    this.end(context);
  }

  drawBox(context, { row, low, lower, median, upper, high, beyond }, place) {
    const [left, first, middle, third, right] = [low, lower, median, upper, high].map((value) => this.toX(value));
    const y = this.toY(place), half = BOX_ROOM * 0.32;
    const line = (...ends) => strokeLine(context, ...ends);
    const faint = pointed && pointed !== row ? 0.2 : 1;
    context.strokeStyle = context.fillStyle = colourOf(row);
    context.lineWidth = 1.5;
    context.globalAlpha = 0.45 * faint;
    context.fillRect(first, y - half, third - first, 2 * half);
    context.globalAlpha = faint;
    context.setLineDash(dashOf(row));
    context.strokeRect(first, y - half, third - first, 2 * half);
    context.setLineDash([]);
    line(left, y, first, y);
    line(third, y, right, y);
    for (const end of [left, right]) line(end, y - half / 2, end, y + half / 2);
    for (const value of beyond) {
      context.beginPath();
      context.arc(this.toX(value), y, 3, 0, 2 * Math.PI);
      context.stroke();
    }
    context.strokeStyle = css("--ink");
    context.lineWidth = 2;
    line(middle, y - half, middle, y + half);
    context.globalAlpha = 1;
  }

  /* The box in the line of the pointer. */
  find(x, y) {
    const place = Math.floor(((this.box.bottom - y) / (this.box.bottom - this.box.top)) * this.drawn.length);
    if (!this.drawn[place]) return null;
    const { row, count, lower, median, upper } = this.drawn[place];
    const text = count > 1
      ? `median ${number(median)}, quartiles ${number(lower)} and ${number(upper)}, ${count} repetitions`
      : `${number(median)}, not repeated`;
    return { x: this.toX(median), y: this.toY(place), name: row.label, colour: colourOf(row), text };
  }
}
