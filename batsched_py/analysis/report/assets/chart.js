/* Charts: a frame with two axes that is zoomed by dragging, and the curves of the runs in it. */

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const DAY = 86400;
const MOST_MEANS = 100;

class Plot {
  constructor(axis) {
    this.axis = axis;
    this.canvas = element("canvas");
    this.tip = element("div", { className: "tip" });
    this.drag = null;
    this.mark = null;
    this.canvas.onpointerdown = (event) => {
      this.drag = [event.offsetX, event.offsetX];
      this.canvas.setPointerCapture(event.pointerId);
    };
    this.canvas.onpointermove = (event) => this.move(event);
    this.canvas.onpointerup = () => this.release();
    this.canvas.onpointerleave = () => { this.tell(null); this.draw(); };
    this.canvas.ondblclick = () => { zooms.delete(this.axis.label); redraw(); };
  }

  /* Make room for both axes and draw them; what is drawn next is kept inside of them, but for so many pixels. */
  begin(x, y, slack) {
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = this.canvas.getBoundingClientRect();
    [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    const rows = y.ticks(5);
    const left = Math.max(24, ...rows.map(({ text }) => context.measureText(text).width)) + 10;
    this.box = { left, top: 20, right: width - 12, bottom: height - 36 };
    this.x = x;
    this.toX = (value) => left + x.place(value) * (this.box.right - left);
    this.toY = (value) => this.box.bottom - y.place(value) * (this.box.bottom - this.box.top);
    this.drawAxes(context, x.ticks(Math.max(3, Math.min(7, width / 75))), rows, y.label);
    context.save();
    context.beginPath();
    context.rect(left - slack, this.box.top - slack,
      this.box.right - left + 2 * slack, this.box.bottom - this.box.top + 2 * slack);
    context.clip();
    return context;
  }

  drawAxes(context, columns, rows, label) {
    const { left, top, right, bottom } = this.box;
    const line = (x0, y0, x1, y1) => {
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
      context.stroke();
    };
    context.lineWidth = 1;
    context.strokeStyle = css("--line");
    context.fillStyle = css("--faint");
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const { at, text } of rows) {
      const y = Math.round(this.toY(at)) + 0.5;
      line(left, y, right, y);
      context.fillText(text, left - 6, y);
    }
    context.textAlign = "left";
    context.fillText(label, 0, 7);
    context.textAlign = "center";
    for (const { at, middle, text } of columns) {
      const x = Math.round(this.toX(at)) + 0.5;
      line(x, bottom, x, bottom + 4);
      context.fillText(text, this.toX(middle ?? at), bottom + 12);
    }
    context.fillText(this.x.label, (left + right) / 2, bottom + 28);
    context.strokeStyle = css("--faint");
    line(left, bottom + 0.5, right, bottom + 0.5);
  }

  end(context) {
    context.restore();
    if (this.mark) {
      context.beginPath();
      context.arc(this.mark.x, this.mark.y, 4, 0, 2 * Math.PI);
      context.fillStyle = this.mark.colour;
      context.fill();
    }
    if (this.drag) {
      const [from, to] = this.drag;
      context.fillStyle = "rgba(128, 128, 128, .2)";
      context.fillRect(Math.min(from, to), this.box.top, Math.abs(to - from), this.box.bottom - this.box.top);
    }
  }

  fromX(pixel) {
    const place = (pixel - this.box.left) / (this.box.right - this.box.left);
    return this.x.value(Math.min(1, Math.max(0, place)));
  }

  move(event) {
    if (!this.box) return;
    if (this.drag) this.drag[1] = event.offsetX;
    this.tell(this.drag ? null : this.find(event.offsetX, event.offsetY));
    this.draw();
  }

  /* Show what was found under the pointer. */
  tell(found) {
    this.mark = found;
    this.tip.style.display = found ? "block" : "none";
    if (!found) return;
    const name = element("b", { textContent: found.name });
    name.style.color = found.colour;
    this.tip.replaceChildren(name, element("br"), found.text);
    const room = this.canvas.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${this.canvas.offsetLeft + Math.max(0, Math.min(found.x + 12, room))}px`;
    this.tip.style.top = `${this.canvas.offsetTop + found.y + 14}px`;
  }

  release() {
    const [from, to] = this.drag ?? [0, 0];
    this.drag = null;
    if (Math.abs(to - from) > 5) zooms.set(this.axis.label, [this.fromX(from), this.fromX(to)].sort((a, b) => a - b));
    this.draw();
    redraw();
  }
}

class Chart extends Plot {
  constructor(figure) {
    super(figure.x);
    this.figure = figure;
    this.element = element("figure", {},
      element("figcaption", {}, figure.title, element("small", { textContent: figure.about })), this.canvas, this.tip);
  }

  /* All that may be drawn, what was recorded first. */
  rows() {
    return [...shownRecorded(), ...shown()].filter((row) => row.drawn);
  }

  /* The points of all that is drawn. */
  curves() {
    return this.rows()
      .filter((row) => row.curves[this.figure.title])
      .map((row) => {
        const [x, ys] = row.curves[this.figure.title];
        const distance = (x[x.length - 1] - x[0]) / (ys.length - 1 || 1);
        const xs = x.length === ys.length ? x : ys.map((_, place) => x[0] + place * distance);
        return { row, xs, ys };
      });
  }

  /* Join periods until there are few enough. They are days, halved or doubled, and so fit into longer ones; after
     the end of a run nothing happens. */
  joined({ row, xs, ys }, [left, right]) {
    const length = DAY * 2 ** Math.ceil(Math.log2((right - left) / MOST_MEANS / DAY));
    const count = Math.round(length / (xs[1] - xs[0]));
    if (this.figure.style !== "means" || !(count > 1)) return { row, xs, ys };
    const sums = Array(Math.ceil(ys.length / count)).fill(0);
    ys.forEach((y, place) => { sums[Math.floor(place / count)] += y; });
    return { row, xs: sums.map((_, place) => (place + 0.5) * length), ys: sums.map((sum) => sum / count) };
  }

  draw() {
    let curves = this.curves();
    this.drawn = [];
    this.element.hidden = !curves.length;
    if (!curves.length) return;
    const ends = zooms.get(this.axis.label) ?? this.ends(curves);
    curves = curves.map((curve) => this.joined(curve, ends));
    const [low, high] = this.range(curves, ends);
    const time = timeUnit(ends[1]);
    this.y = new Scale(this.figure.y, low, high, time);
    const context = this.begin(new Scale(this.figure.x, ...ends), this.y, 3);
    this.drawn = curves;
    for (const curve of [...curves].sort((a, b) => (a.row === pointed) - (b.row === pointed))) this.drawCurve(context, curve);
    this.end(context);
  }

  ends(curves) {
    if (this.figure.x.unit === "week") return [0, 168];
    let low = this.figure.x.unit ? 0 : Infinity, high = -Infinity;
    for (const { xs } of curves) for (const x of xs) [low, high] = [Math.min(low, x), Math.max(high, x)];
    if (low === high) return [low * 0.9, high * 1.1 || 1];
    const room = this.figure.style === "dots" && this.figure.x.scale === "linear" ? (high - low) / 20 : 0;
    return [low - room, high + room];
  }

  /* From the lowest to the highest value between both ends, and from 0 where that is near. What was recorded may
     lie outside: it must not make the others small. */
  range(curves, [left, right]) {
    let low = Infinity, high = -Infinity;
    const simulated = curves.filter(({ row }) => row.place !== undefined);
    for (const { xs, ys } of simulated.length ? simulated : curves)
      for (let place = 0; place < xs.length; place++)
        if (xs[place] >= left && xs[place] <= right) {
          low = Math.min(low, ys[place]);
          high = Math.max(high, ys[place]);
        }
    if (this.figure.y.scale === "log") return low < high ? [low, high] : [low / 2 || 1, high * 2 || 10];
    if (low > high) [low, high] = [0, 1];
    if (low > 0 && (low < high * 0.6 || this.figure.style === "steps")) low = 0;
    if (low === high) [low, high] = [Math.min(low, 0), Math.max(high, low ? 0 : 1)];
    return [low, high];
  }

  drawCurve(context, { row, xs, ys }) {
    const colour = colourOf(row);
    context.globalAlpha = pointed && pointed !== row ? 0.2 : 1;
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = row.place === undefined ? 3 : row === pointed ? 2.6 : 1.5;
    context.setLineDash(dashOf(row));
    context.lineJoin = "round";
    context.beginPath();
    if (this.figure.style === "dots") {
      context.globalAlpha *= 0.65;
      for (let place = 0; place < xs.length; place++) {
        const [x, y] = [this.toX(xs[place]), this.toY(ys[place])];
        context.moveTo(x, y);
        context.arc(x, y, xs.length === 1 ? 4 : 2.4, 0, 2 * Math.PI);
      }
      context.fill();
    } else {
      for (let place = 0; place < xs.length; place++) {
        const [x, y] = [this.toX(xs[place]), this.toY(ys[place])];
        if (this.figure.style === "steps") context.lineTo(x, this.toY(ys[place - 1] ?? 0));
        context.lineTo(x, y);
      }
      context.stroke();
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  /* The point that is nearest to the pointer. */
  find(x, y) {
    let nearest = null;
    for (const { row, xs, ys } of this.drawn)
      for (let place = 0; place < xs.length; place++) {
        const at = { x: this.toX(xs[place]), y: this.toY(ys[place]) };
        const away = Math.hypot(at.x - x, (at.y - y) / 2);
        if (at.x >= this.box.left - 1 && at.x <= this.box.right + 1 && (!nearest || away < nearest.away))
          nearest = { ...at, away, row, values: [xs[place], ys[place]] };
      }
    if (!nearest) return null;
    const [across, up] = nearest.values;
    const text = `${this.y.tell(up)} at ${this.x.tell(across)}`;
    return { ...nearest, name: nearest.row.label, colour: colourOf(nearest.row), text };
  }
}
