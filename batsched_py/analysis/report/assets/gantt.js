/* The Gantt chart of one run at a time: its jobs, or an image of how busy its hosts are. */

const TIME = { label: "time", unit: "s", scale: "linear" };
const HOSTS = { label: "host", unit: "", scale: "linear" };
const JOB_COLOURS = 6;
const MOST_NODES = 8;

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
    const { hosts, end, image } = this.row.gantt;
    const ends = zooms.get(TIME.label) ?? [0, end];
    const context = this.begin(new Scale(TIME, ...ends), new Scale(HOSTS, 0, hosts), 0);
    document.getElementById("gantt-key").hidden = !image;
    if (image) this.drawImage(context, ends);
    else this.drawJobs(context);
    this.drawNodes(context);
    this.end(context);
  }

  find(x, y) {
    const { row, box } = this;
    if (!row || x < box.left || x >= box.right || y < box.top || y >= box.bottom) return null;
    const host = ((box.bottom - y) / (box.bottom - box.top)) * row.gantt.hosts;
    const found = row.gantt.image ? this.findShare(this.fromX(x), host) : this.findJob(this.fromX(x), host);
    return found && { x, y, colour: css("--ink"), ...found };
  }

  /* --- jobs --- */

  /* Neighbouring jobs differ in colour, for these go round in the order of their starts. */
  drawJobs(context) {
    const { jobs, job, from, to, low, high } = this.row.gantt;
    const colours = Array.from({ length: JOB_COLOURS }, (_, place) => paletteColour(place));
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let place = 0; place < job.length; place++) {
      const [left, right] = [this.toX(from[place]), this.toX(to[place])];
      if (right < this.box.left || left > this.box.right) continue;
      const [top, bottom] = [this.toY(high[place]), this.toY(low[place])];
      context.fillStyle = context.strokeStyle = colours[job[place] % colours.length];
      context.globalAlpha = 0.6;
      context.fillRect(left, top, Math.max(right - left, 0.5), bottom - top);
      context.globalAlpha = 1;
      if (right - left > 3 && bottom - top > 2) context.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
      const name = jobs[job[place]];
      if (bottom - top > 12 && right - left > 12 && right - left > context.measureText(name).width + 8) {
        context.fillStyle = css("--ink");
        context.fillText(name, (left + right) / 2, (top + bottom) / 2);
      }
    }
  }

  findJob(time, host) {
    const { jobs, job, from, to, low, high, remarks } = this.row.gantt;
    const hit = job.findIndex((_, place) =>
      from[place] <= time && time < to[place] && low[place] <= host && host < high[place]);
    if (hit < 0) return null;
    const parts = job.map((_, place) => place).filter((place) => job[place] === job[hit]);
    const hosts = parts.map((place) => (high[place] - low[place] > 1 ? `${low[place]}-${high[place] - 1}` : low[place]));
    const where = `${this.x.tell(from[hit])} to ${this.x.tell(to[hit])}, hosts ${hosts.join(" ")}${this.onNodes(parts)}`;
    return { name: `job ${jobs[job[hit]]}`, text: [where, ...(remarks?.[job[hit]] ?? [])].join("; ") };
  }

  /* --- nodes --- */

  /* How many cores of which nodes some rectangles cover, where hosts are cores of nodes. */
  onNodes(parts) {
    const { nodes, hosts, low, high } = this.row.gantt;
    if (!nodes) return "";
    const told = nodes.firsts.map((first, place) => {
      const next = nodes.firsts[place + 1] ?? hosts;
      const cores = parts.reduce((sum, part) => sum + Math.max(0, Math.min(next, high[part]) - Math.max(first, low[part])), 0);
      return cores && `${nodes.names[place]} (${cores} of ${next - first} cores)`;
    }).filter(Boolean);
    return `; ${told.slice(0, MOST_NODES).join(", ")}${told.length > MOST_NODES ? `, and ${told.length - MOST_NODES} more nodes` : ""}`;
  }

  /* A line between each two nodes, where they are far enough from each other. */
  drawNodes(context) {
    const { nodes } = this.row.gantt;
    if (!nodes || (this.box.bottom - this.box.top) / nodes.firsts.length < 4) return;
    context.fillStyle = css("--ink");
    context.globalAlpha = 0.25;
    for (const first of nodes.firsts.slice(1)) context.fillRect(this.box.left, this.toY(first), this.box.right - this.box.left, 1);
    context.globalAlpha = 1;
  }

  nodeOf(host) {
    const { nodes } = this.row.gantt;
    return nodes ? `node ${nodes.names[nodes.firsts.findLastIndex((first) => first <= host)]}, ` : "";
  }

  /* --- image --- */

  drawImage(context, [left, right]) {
    const picture = this.picture();
    if (!picture) return;
    const { end } = this.row.gantt;
    const [width, height] = [picture.width / end, this.box.bottom - this.box.top];
    const [from, to] = [Math.min(left, end), Math.min(right, end)];
    context.imageSmoothingEnabled = (right - left) * width > (this.box.right - this.box.left) / 2;
    context.drawImage(picture, from * width, 0, (to - from) * width, picture.height,
      this.toX(from), this.box.top, this.toX(to) - this.toX(from), height);
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

  findShare(time, host) {
    const { busy, image, gantt: { hosts, end } } = this.row;
    const { naturalWidth: width, naturalHeight: height } = image;
    const [line, column] = [Math.floor((host / hosts) * height), Math.floor((time / end) * width)];
    if (!busy || column >= width || line >= height) return null;
    const [first, next] = [line, line + 1].map((each) => Math.round((each / height) * hosts));
    const share = Math.round((busy[(height - 1 - line) * width + column] / 255) * 100);
    return {
      name: this.nodeOf(first) + (next - first > 1 ? `hosts ${first} to ${next - 1}` : `host ${first}`),
      text: `${share} % busy at ${this.x.tell(time)}`,
    };
  }
}
