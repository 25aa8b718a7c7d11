/* The curves of the runs in a figure. */

const DAY = 86400;
const MOST_MEANS = 100;

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
    const context = this.begin(new Scale(this.figure.x, ...ends), new Scale(this.figure.y, low, high, time), 3);
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

  /* Whether a row is what others are seen against. */
  isGrey(row) {
    return row.place === undefined;
  }

  colour(row) {
    return colourOf(row);
  }

  dashes(row) {
    return dashOf(row);
  }

  drawCurve(context, { row, xs, ys }) {
    const colour = this.colour(row);
    context.globalAlpha = pointed && pointed !== row ? 0.2 : 1;
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = this.isGrey(row) ? 3 : row === pointed ? 2.6 : 1.5;
    context.setLineDash(this.dashes(row));
    if (this.figure.style === "dots") context.globalAlpha *= 0.65;
    this.trace(context, xs, ys, this.figure.style, xs.length === 1 ? 4 : 2.4);
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  /* The curve under the pointer stands out, in all figures. */
  tell(found) {
    super.tell(found);
    const row = found ? found.row : null;
    if (row !== pointed) point(row);
  }

  /* The point that is nearest to the pointer. */
  find(x, y) {
    const found = this.nearest(this.drawn, x, y);
    if (!found) return null;
    const { curve: { row, xs, ys }, place } = found;
    const text = `${this.y.tell(ys[place])} at ${this.x.tell(xs[place])}`;
    return { ...found, row, name: row.label, colour: this.colour(row), text };
  }
}
