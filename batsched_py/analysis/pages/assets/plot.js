/* A plot: a canvas with two axes, zoomed by dragging, that tells what is under the pointer. */

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/* Everything on the page that is drawn; each has a method draw(). */
const drawings = [];
/* For each horizontal axis that is zoomed, the part of it that is shown. */
const zooms = new Map();
let waiting = false;

/* Draw everything anew, once, before the browser shows the page again. */
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    for (const each of drawings) each.draw();
  });
}

window.addEventListener("resize", redraw);

function strokeLine(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

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
    [this.x, this.y] = [x, y];
    this.toX = (value) => left + x.place(value) * (this.box.right - left);
    this.toY = (value) => this.box.bottom - y.place(value) * (this.box.bottom - this.box.top);
    this.drawAxes(context, x.ticks(Math.max(3, Math.min(7, width / 75))), rows);
    context.save();
    context.beginPath();
    context.rect(left - slack, this.box.top - slack,
      this.box.right - left + 2 * slack, this.box.bottom - this.box.top + 2 * slack);
    context.clip();
    return context;
  }

  drawAxes(context, columns, rows) {
    const { left, right, bottom } = this.box;
    context.lineWidth = 1;
    context.strokeStyle = css("--line");
    context.fillStyle = css("--faint");
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const { at, text } of rows) {
      const y = Math.round(this.toY(at)) + 0.5;
      strokeLine(context, left, y, right, y);
      context.fillText(text, left - 6, y);
    }
    context.textAlign = "left";
    context.fillText(this.y.label, 0, 7);
    context.textAlign = "center";
    for (const { at, middle, text } of columns) {
      const x = Math.round(this.toX(at)) + 0.5;
      strokeLine(context, x, bottom, x, bottom + 4);
      context.fillText(text, this.toX(middle ?? at), bottom + 12);
    }
    context.fillText(this.x.label, (left + right) / 2, bottom + 28);
    context.strokeStyle = css("--faint");
    strokeLine(context, left, bottom + 0.5, right, bottom + 0.5);
  }

  /* Draw points as a line, as steps that rise from 0, or as dots of this radius. */
  trace(context, xs, ys, style, radius) {
    context.lineJoin = "round";
    context.beginPath();
    for (let place = 0; place < xs.length; place++) {
      const [x, y] = [this.toX(xs[place]), this.toY(ys[place])];
      if (style === "dots") {
        context.moveTo(x, y);
        context.arc(x, y, radius, 0, 2 * Math.PI);
        continue;
      }
      if (style === "steps") context.lineTo(x, this.toY(ys[place - 1] ?? 0));
      context.lineTo(x, y);
    }
    if (style === "dots") context.fill();
    else context.stroke();
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

  /* The point of some curves that is nearest to the pointer, and its curve. */
  nearest(curves, x, y) {
    let nearest = null;
    for (const curve of curves)
      for (let place = 0; place < curve.xs.length; place++) {
        const at = { x: this.toX(curve.xs[place]), y: this.toY(curve.ys[place]) };
        const away = Math.hypot(at.x - x, (at.y - y) / 2);
        if (at.x >= this.box.left - 1 && at.x <= this.box.right + 1 && (!nearest || away < nearest.away))
          nearest = { ...at, away, curve, place };
      }
    return nearest;
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
