/* The page as a whole. */

const charts = data.figures
  .filter((figure) => tellsSomething(figure))
  .map((figure) => new Chart(figure));
const gantt = new Gantt();
const metric = new Metric();
const boxes = new Boxes();
const multiples = new Multiples();

/* A figure of single points says nothing unless they differ along its horizontal axis. */
function tellsSomething({ title }) {
  const curves = data.rows.map((row) => row.curves[title]).filter(Boolean);
  const single = curves.every(([, ys]) => ys.length === 1);
  return single ? new Set(curves.map(([[x]]) => x)).size > 1 : curves.length > 0;
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

drawings.push(...charts, gantt, metric, boxes, multiples);
for (const chart of charts) document.getElementById(chart.figure.section).append(chart.element);
dark.addEventListener("change", drawEverything);
drawRuns();
drawFirst();
drawEverything();
