/* The figures of the page, each in the element that asks for it. */

class Layered extends Plot {
  constructor(figure, place) {
    super(figure.x);
    this.figure = figure;
    place.append(this.canvas, this.tip);
    const named = figure.layers.filter(({ kind, name }) => name && kind !== "rule");
    place.querySelector("figcaption").append(...named.map(({ colour, name }) => {
      const swatch = element("span", { className: "swatch" });
      swatch.style.background = colour === null ? "var(--grey)" : `var(--c${colour})`;
      return element("span", { className: "key" }, swatch, name);
    }));
  }

  draw() {
    const { x, y, layers } = this.figure;
    const scale = (axis, ends) => (axis.names ? new Names(axis.label, axis.names) : new Scale(axis, ...ends));
    const context = this.begin(scale(x, zooms.get(x.label) ?? x.ends), scale(y, y.ends), 4);
    for (const layer of layers) this.drawLayer(context, layer);
    this.end(context);
  }

  drawLayer(context, { kind, marks, colour, name }) {
    const points = [marks.map(([x]) => x), marks.map(([, y]) => y)];
    context.strokeStyle = context.fillStyle = this.colour(colour);
    context.lineWidth = 2;
    if (kind === "bars") this.drawBars(context, marks);
    else if (kind === "area") this.drawArea(context, ...points);
    else if (kind === "rule") this.drawRule(context, points[1][0], name);
    else this.trace(context, ...points, kind, 4);
  }

  colour(place) {
    return place === null ? css("--grey") : paletteColour(place);
  }

  /* Bars have a small gap between them. */
  drawBars(context, bars) {
    for (const [left, right, base, top, , , shade] of bars) {
      const x = this.toX(left), width = this.toX(right) - x, y = this.toY(top);
      const gap = Math.min(1.5, width * 0.12);
      context.globalAlpha = shade;
      context.fillRect(x + gap / 2, y, Math.max(width - gap, 0.4), this.toY(base) - y);
    }
    context.globalAlpha = 1;
  }

  drawArea(context, xs, ys) {
    context.globalAlpha = 0.18;
    context.beginPath();
    context.moveTo(this.toX(xs[0]), this.box.bottom);
    xs.forEach((x, place) => context.lineTo(this.toX(x), this.toY(ys[place])));
    context.lineTo(this.toX(xs[xs.length - 1]), this.box.bottom);
    context.fill();
    context.globalAlpha = 1;
  }

  drawRule(context, height, text) {
    const { left, right } = this.box, y = this.toY(height);
    context.lineWidth = 1;
    context.setLineDash([3, 4]);
    strokeLine(context, left, y, right, y);
    context.setLineDash([]);
    context.fillStyle = css("--faint");
    context.textAlign = "right";
    context.fillText(text, right - 2, y - 8);
  }

  /* The bar under the pointer, else the nearest point that tells something. */
  find(x, y) {
    return this.findBar(x, y) ?? this.findPoint(x, y);
  }

  findBar(x, y) {
    for (const { marks, colour } of this.figure.layers.filter(({ kind }) => kind === "bars"))
      for (const [left, right, base, top, name, text] of marks)
        if (this.toX(left) <= x && x < this.toX(right) && this.toY(top) <= y && y < this.toY(base))
          return { x, y, name, text, colour: this.colour(colour) };
    return null;
  }

  findPoint(x, y) {
    const curves = this.figure.layers.filter(({ kind }) => kind !== "bars").map(({ marks, colour }) => {
      const telling = marks.filter(([, , name]) => name);
      return { telling, colour, xs: telling.map((mark) => mark[0]), ys: telling.map((mark) => mark[1]) };
    });
    const found = this.nearest(curves, x, y);
    if (!found) return null;
    const [, , name, text] = found.curve.telling[found.place];
    return { ...found, name, text, colour: this.colour(found.curve.colour) };
  }
}

for (const place of document.querySelectorAll("[data-figure]")) {
  const figure = data[place.dataset.figure];
  if (figure) drawings.push(new Layered(figure, place));
  else place.append(element("p", { className: "none", textContent: "The log does not tell." }));
}
dark.addEventListener("change", redraw);
redraw();
