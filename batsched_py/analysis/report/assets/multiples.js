/* Small multiples: one figure, in a panel for each value of an axis, with all runs that have it. */

/* The rows of all panels: of every value of this axis, and of those that are chosen in the legend on the others. */
function multiplied(axis) {
  return chosenOf(shown(axis), axis);
}

class Multiple extends Chart {
  constructor(figure, axis, value) {
    super(figure);
    this.over = axis;
    this.value = value;
    this.element.firstChild.replaceChildren(value ?? "none");
  }

  /* What was recorded stays out of the way here. */
  rows() {
    return multiplied(this.over).filter((row) => row.axes[this.over] === this.value);
  }

  colour(row) {
    return colourOf(row, this.over);
  }

  dashes(row) {
    return dashOf(row, this.over);
  }

  draw() {
    if (this.seen) super.draw();
  }

  find(x, y) {
    const found = super.find(x, y);
    return found && { ...found, name: nameWithout(found.row, this.over) };
  }
}

class Multiples {
  constructor() {
    [this.figure, this.axis] = ["multiple-figure", "multiple-axis"].map((id) => document.getElementById(id));
    this.figure.append(...charts.map(({ figure }, place) => element("option", { value: place, textContent: figure.title })));
    this.axis.append(...differing.map((axis) => element("option", { value: axis, textContent: axis })));
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
    const axis = this.axis.value;
    const values = [...new Set(data.rows.map((row) => row.axes[axis]))];
    this.panels = values.map((value) => new Multiple(figure, axis, value));
    document.getElementById("panels").replaceChildren(...this.panels.map((panel) => panel.element));
    for (const panel of this.panels) this.watcher.observe(panel.element);
    this.draw();
  }

  /* Draw the panels anew, and which colour stands for what in them. */
  draw() {
    document.getElementById("panel-names").replaceChildren(...key(multiplied(this.axis.value), this.axis.value));
    for (const panel of this.panels) panel.draw();
  }
}
