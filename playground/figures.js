/* Figures of a schedule: curves of several, and the Gantt chart of one. */

const DAY = 86400;
const MARGIN = { left: 56, right: 12, top: 10, bottom: 34 };
const HEIGHT = 220;
const JOB_COLOURS = ["#1c548a", "#c8553d", "#0b6e4f", "#8a6d1c", "#6a4c93", "#4b8fb5"];

/* The jobs that were executed, from the text of a jobs.csv; times are in seconds. */
export function jobsOf(text) {
  const [head, ...lines] = text.trimEnd().split("\n");
  const names = head.split(",");
  const column = (name) => names.indexOf(name);
  const [submitted, started, finished, hosts] = [
    "submission_time", "starting_time", "finish_time", "allocated_resources",
  ].map(column);
  return lines
    .map((line) => line.split(","))
    .filter((cells) => cells[hosts])
    .map((cells) => ({
      submitted: +cells[submitted], started: +cells[started], finished: +cells[finished],
      hosts: cells[hosts].split(" ").map((part) => part.split("-").map(Number)).map(([low, high]) => [low, high ?? low]),
    }));
}

/* How many jobs wait, as corners of a step function. */
export function waiting(jobs) {
  const changes = jobs.flatMap((job) => [[job.submitted, 1], [job.started, -1]]).sort((a, b) => a[0] - b[0]);
  let count = 0;
  const corners = [];
  changes.forEach(([time, change], place) => {
    count += change;
    if (changes[place + 1]?.[0] !== time) corners.push([time / DAY, count]);
  });
  return corners;
}

/* The part of the jobs that wait no longer than so many hours. */
export function waits(jobs) {
  const sorted = jobs.map((job) => (job.started - job.submitted) / 3600).sort((a, b) => a - b);
  return sorted.map((wait, place) => [wait, (100 * (place + 1)) / sorted.length]);
}

function made(name, attributes, parent, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  parent.append(node);
  return node;
}

/* Round numbers from 0 to an end, about so many. */
function ticks(end, about) {
  const power = 10 ** Math.floor(Math.log10(end / about || 1));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => end / each <= about);
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, place) => +(place * step).toPrecision(6));
}

/* Axes in an element, and what gives the place of a point in them. */
function axes(element, [xLabel, yLabel], [xEnd, yEnd]) {
  element.replaceChildren();
  const width = Math.max(280, element.clientWidth);
  const svg = made("svg", { width, height: HEIGHT, role: "img", "aria-label": `${yLabel} by ${xLabel}` }, element);
  const x = (value) => MARGIN.left + (value / xEnd) * (width - MARGIN.left - MARGIN.right);
  const y = (value) => HEIGHT - MARGIN.bottom - (value / yEnd) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  for (const value of ticks(xEnd, width / 80))
    made("text", { x: x(value), y: HEIGHT - MARGIN.bottom + 14, "text-anchor": "middle" }, svg, value);
  for (const value of ticks(yEnd, 5)) {
    made("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value), class: "grid" }, svg);
    made("text", { x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" }, svg, value);
  }
  made("text", { x: width / 2, y: HEIGHT - 4, "text-anchor": "middle" }, svg, xLabel);
  made("text", { x: -HEIGHT / 2, y: 12, "text-anchor": "middle", transform: "rotate(-90)" }, svg, yLabel);
  return { svg, x, y };
}

/* Step functions in one figure, each with its class of line; the first is the baseline. */
export function curves(element, labels, several) {
  const ends = [0, 1].map((axis) => several.reduce((most, points) => points.reduce((a, p) => Math.max(a, p[axis]), most), 0));
  const { svg, x, y } = axes(element, labels, ends.map((end) => end || 1));
  several.forEach((points, place) => {
    const path = points.map(([a, b], at) => (at ? `H${x(a).toFixed(1)}V` : `M${x(a).toFixed(1)},`) + y(b).toFixed(1));
    made("path", { d: path.join(""), class: place ? "yours" : "baseline" }, svg);
  });
}

/* Each job as a rectangle: when it ran, and on which hosts. */
export function gantt(element, jobs) {
  const days = jobs.reduce((end, job) => Math.max(end, job.finished), 0) / DAY;
  const hosts = 1 + jobs.reduce((most, job) => Math.max(most, job.hosts.at(-1)[1]), 0);
  const { svg, x, y } = axes(element, ["days", "hosts"], [days || 1, hosts]);
  jobs.forEach((job, place) => {
    const [left, right] = [x(job.started / DAY), x(job.finished / DAY)];
    for (const [low, high] of job.hosts)
      made("rect", {
        x: left.toFixed(2), width: Math.max(0.3, right - left).toFixed(2), y: y(high + 1).toFixed(2),
        height: (y(low) - y(high + 1)).toFixed(2), fill: JOB_COLOURS[place % JOB_COLOURS.length],
      }, svg);
  });
}
