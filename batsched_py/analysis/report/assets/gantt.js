/* The Gantt chart of one run at a time. */

const TIME = { label: "time", unit: "s", scale: "linear" };
const HOSTS = { label: "host", unit: "", scale: "linear" };

class Gantt extends Plot {
  constructor() {
    super(TIME);
    this.choice = document.getElementById("gantt-run");
    this.choice.onchange = () => this.draw();
    this.element = document.getElementById("gantt");
    this.element.append(this.canvas, this.tip);
  }

  /* Offer the runs that are shown. */
  offer() {
    const before = this.choice.value;
    const rows = shown().filter((row) => row.gantt);
    this.choice.replaceChildren(...rows.map((row) => element("option", { value: row.place, textContent: row.label })));
    if (rows.some((row) => String(row.place) === before)) this.choice.value = before;
  }

  draw() {
    this.row = data.rows[this.choice.value];
    this.element.hidden = !this.row;
    if (!this.row) return;
    const { hosts, end } = this.row.gantt;
    const [left, right] = zooms.get(TIME.label) ?? [0, end];
    const context = this.begin(new Scale(TIME, left, right), new Scale(HOSTS, 0, hosts));
    const picture = this.picture();
    if (picture) {
      const [width, height] = [picture.width / end, this.box.bottom - this.box.top];
      const shown = [Math.min(left, end), Math.min(right, end)];
      context.imageSmoothingEnabled = (right - left) * width > (this.box.right - this.box.left) / 2;
      context.drawImage(picture, shown[0] * width, 0, (shown[1] - shown[0]) * width, picture.height,
        this.toX(shown[0]), this.box.top, this.toX(shown[1]) - this.toX(shown[0]), height);
    }
    this.end(context);
  }

  /* The image in the colours of the page, as soon as it has been decoded. */
  picture() {
    const { row } = this;
    if (!row.image) {
      row.image = element("img", { src: `data:image/png;base64,${row.gantt.image}` });
      row.image.decode().then(() => this.draw());
    }
    if (!row.image.complete) return null;
    const { naturalWidth: width, naturalHeight: height } = row.image;
    const picture = element("canvas", { width, height });
    const context = picture.getContext("2d", { willReadFrequently: true });
    context.drawImage(row.image, 0, 0);
    const pixels = context.getImageData(0, 0, width, height);
    const [red, green, blue] = css("--busy").split(",").map(Number);
    row.busy = new Uint8Array(width * height);
    for (let place = 0; place < row.busy.length; place++) {
      row.busy[place] = 255 - pixels.data[4 * place];
      pixels.data.set([red, green, blue, row.busy[place]], 4 * place);
    }
    context.putImageData(pixels, 0, 0);
    return picture;
  }

  /* How busy the host under the pointer is. */
  find(x, y) {
    const { row, box } = this;
    if (!row?.busy || x < box.left || x >= box.right || y < box.top || y >= box.bottom) return null;
    const { hosts, end } = row.gantt;
    const { naturalWidth: width, naturalHeight: height } = row.image;
    const line = Math.floor(((y - box.top) / (box.bottom - box.top)) * height);
    const column = Math.floor((this.fromX(x) / end) * width);
    if (column >= width) return null;
    const [first, last] = [height - 1 - line, height - line].map((row) => Math.round((row / height) * hosts));
    const name = last - first > 1 ? `hosts ${first} to ${last - 1}` : `host ${first}`;
    const share = Math.round((row.busy[line * width + column] / 255) * 100);
    return { x, y, name, colour: css("--ink"), text: `${share} % busy at ${this.x.tell(this.fromX(x))}` };
  }
}
