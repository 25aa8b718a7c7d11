/* Small multiples: one figure, in a panel for each value of some axes, with all runs that have it. */

/* The rows of all panels: of every value of these axes, and of those that are chosen in the legend on the others. */
function multiplied(over) {
  return chosenOf(shown(...over), ...over);
}

/* The panel of a row. */
function panelOf(row, over) {
  return over.map((axis) => row.axes[axis] ?? "none").join(" · ");
}

/* Whether a row is what others in its panel are compared with, which is grey. */
function isBaseline(row, over) {
  const { axis, name } = data.baseline ?? {};
  return axis !== undefined && row.axes[axis] === name && !over.includes(axis);
}

class Multiple extends Chart {
  constructor(figure, over, value) {
    super(figure);
    this.over = over;
    this.value = value;
    this.element.firstChild.replaceChildren(value);
  }

  /* What was recorded stays out of the way here, and the baseline lies beneath. */
  rows() {
    const rows = multiplied(this.over).filter((row) => panelOf(row, this.over) === this.value);
    return rows.sort((a, b) => isBaseline(b, this.over) - isBaseline(a, this.over));
  }

  isGrey(row) {
    return isBaseline(row, this.over);
  }

  colour(row) {
    return this.isGrey(row) ? css("--grey") : colourOf(row, ...this.over);
  }

  dashes(row) {
    return this.isGrey(row) ? [] : dashOf(row, ...this.over);
  }

  draw() {
    if (this.seen) super.draw();
  }

  find(x, y) {
    const found = super.find(x, y);
    return found && { ...found, name: nameWithout(found.row, ...this.over) };
  }
}

class Multiples {
  constructor() {
    [this.figure, this.axis] = ["multiple-figure", "multiple-axis"].map((id) => document.getElementById(id));
    this.figure.append(...charts.map(({ figure }, place) => element("option", { value: place, textContent: figure.title })));
    /* At first a panel has what may be compared: all that differ in who decides. */
    const others = differing.filter((axis) => axis !== colourAxis() && axis !== "log");
    this.choices = [...differing.map((axis) => [axis]), ...(others.length > 1 ? [others] : [])];
    this.axis.append(...this.choices.map((over, place) => element("option", { value: place, textContent: over.join(" · ") })));
    this.axis.value = logs.size < 2 && others.length > 1 ? this.choices.length - 1 : 0;
    this.figure.value = Math.max(0, charts.findIndex(({ figure }) => figure.title === "Waiting times"));
    this.figure.onchange = this.axis.onchange = () => this.make();
    /* Panels are drawn when they come into sight, for there may be dozens of them. */
    this.watcher = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const panel = this.panels.find((each) => each.element === target);
        if (!panel) continue;
        panel.seen = isIntersecting;
        panel.draw();
      }
    });
    this.panels = [];
    const useful = differing.length && charts.length;
    document.getElementById("multiples").hidden = !useful;
    if (useful) this.make();
  }

  make() {
    this.watcher.disconnect();
    const { figure } = charts[this.figure.value];
    const values = [...new Set(data.rows.map((row) => panelOf(row, this.over)))];
    this.panels = values.map((value) => new Multiple(figure, this.over, value));
    document.getElementById("panels").replaceChildren(...this.panels.map((panel) => panel.element));
    for (const panel of this.panels) this.watcher.observe(panel.element);
    this.draw();
  }

  get over() {
    return this.choices[this.axis.value];
  }

  /* Draw the panels anew, and which colour stands for what in them. */
  draw() {
    if (!this.panels.length) return;
    const rows = multiplied(this.over), grey = rows.filter((row) => isBaseline(row, this.over));
    const names = key(rows.filter((row) => !grey.includes(row)), ...this.over);
    const baseline = grey.length ? marked(new Map([[`${data.baseline.name} (baseline)`, [css("--grey"), []]]])) : [];
    document.getElementById("panel-names").replaceChildren(...baseline, ...names);
    for (const panel of this.panels) panel.draw();
  }
}
