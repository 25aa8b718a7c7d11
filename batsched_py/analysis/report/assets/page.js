/* The page as a whole. */

const charts = data.figures
  .filter((figure) => tellsSomething(figure))
  .map((figure) => new Chart(figure));
const gantt = new Gantt();
const metric = new Metric();
const boxes = new Boxes();
const multiples = new Multiples();
let waiting = false;

/* A figure of single points says nothing unless they differ along its horizontal axis. */
function tellsSomething({ title }) {
  const curves = data.rows.map((row) => row.curves[title]).filter(Boolean);
  const single = curves.every(([, ys]) => ys.length === 1);
  return single ? new Set(curves.map(([[x]]) => x)).size > 1 : curves.length > 0;
}

/* Draw all charts anew, once, before the browser shows the page again. */
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    for (const chart of charts) chart.draw();
    gantt.draw();
    metric.draw();
    boxes.draw();
    multiples.draw();
  });
}

function drawEverything() {
  nameAll();
  drawFilters();
  drawTable();
  drawLegend();
  drawMarks();
  gantt.offer();
  redraw();
}

for (const chart of charts) document.getElementById(chart.figure.section).append(chart.element);
window.addEventListener("resize", redraw);
dark.addEventListener("change", drawEverything);
drawRuns();
drawFirst();
drawEverything();
