/* Scales: where a value lies along an axis, and which values are written there. */

/* Round numbers from low to high, about so many. */
function steps(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.75);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, place) => {
    const at = (first + place) * step;
    return { at, text: withDecimals(at, decimals) };
  });
}

function plain(value) {
  return value.toLocaleString("en", { maximumSignificantDigits: 3 }).replace("-", "−");
}

/* Powers of ten from low to high; where there are hardly any, also their halves and fifths, or round numbers. */
function powers(low, high) {
  const marks = (factors) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high * 1.001; power++)
      for (const factor of factors) found.push(factor * 10 ** power);
    return found.filter((at) => at >= low * 0.999 && at <= high * 1.001);
  };
  const tens = marks([1]), more = marks([1, 2, 5]);
  if (more.length < 2) return steps(low, high, 4);
  return (tens.length > 2 ? tens : more).map((at) => ({ at, text: plain(at) }));
}

/* Powers of ten on both sides of 0, from the smallest on, at most so many. */
function signedPowers(low, high, smallest, count) {
  const sizes = [];
  for (let size = smallest; size <= Math.max(-low, high) * 1.001; size *= 10) sizes.push(size);
  const stride = Math.max(1, Math.ceil(((low < 0 ? 2 : 1) * sizes.length) / count));
  const kept = sizes.filter((_, place) => (sizes.length - 1 - place) % stride === 0);
  return [...kept.map((size) => -size), 0, ...kept]
    .filter((at) => at >= low * 1.001 && at <= high * 1.001)
    .map((at) => ({ at, text: plain(at) }));
}

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/* An axis from low to high. Values are counted in a unit, which the label names. */
class Scale {
  constructor(axis, low, high, time) {
    this.axis = axis;
    [this.unit, this.name] = [1, axis.unit];
    if (axis.unit === "s") [this.unit, this.name] = timeUnit(Math.max(Math.abs(low), Math.abs(high)));
    if (axis.unit === "/s") [this.unit, this.name] = [1 / time[0], `per ${time[2]}`];
    [this.low, this.high] = [low, high];
    const threshold = this.unit / 100;
    const kinds = {
      linear: [(value) => value, (value) => value],
      log: [Math.log, Math.exp],
      symlog: [(value) => Math.asinh(value / threshold), (value) => Math.sinh(value) * threshold],
    };
    [this.bend, this.unbend] = kinds[axis.scale];
    this.from = this.bend(low);
    this.length = this.bend(high) - this.from || 1;
  }

  /* Where a value lies, from 0 to 1. */
  place(value) {
    return (this.bend(value) - this.from) / this.length;
  }

  value(place) {
    return this.unbend(this.from + place * this.length);
  }

  ticks(count) {
    if (this.axis.ticks) return this.given(count);
    const [low, high] = [this.low / this.unit, this.high / this.unit];
    if (this.axis.unit === "week" && high - low > 48)
      return WEEKDAYS.map((text, day) => ({ at: 24 * day, middle: 24 * day + 12, text }))
        .filter(({ at }) => at >= low - 12 && at + 12 <= high);
    const marks = this.axis.scale === "log" ? powers(low, high)
      : this.axis.scale === "symlog" ? signedPowers(low, high, 0.1, count) : steps(low, high, count);
    return marks.map(({ at, text }) => ({ at: at * this.unit, text }));
  }

  /* The ticks that come with the axis, as many as there is room for. */
  given(count) {
    const inside = this.axis.ticks.filter(([at]) => at >= this.low && at <= this.high);
    const stride = Math.ceil(inside.length / count);
    return inside.filter((_, place) => place % stride === 0).map(([at, text]) => ({ at, text }));
  }

  get label() {
    if (this.axis.unit === "/s") return `${this.axis.label} ${this.name}`;
    return this.axis.unit && this.axis.unit !== "week" ? `${this.axis.label} (${this.name})` : this.axis.label;
  }

  /* A value in words. */
  tell(value) {
    if (this.axis.unit === "week") {
      const hour = Math.floor(value);
      return `${WEEKDAYS[Math.floor(hour / 24)]} ${hour % 24}:00`;
    }
    const text = number(value / this.unit);
    if (this.axis.unit === "%") return `${text} %`;
    if (this.axis.unit === "/s") return `${text} ${this.axis.label} ${this.name}`;
    return `${text} ${this.name || this.axis.label}`;
  }
}

/* An axis whose values are names. */
class Names extends Scale {
  constructor(label, names) {
    super({ label, unit: "", scale: "linear" }, -0.5, names.length - 0.5);
    this.names = names;
  }

  ticks() {
    return this.names.map((text, at) => ({ at, text }));
  }

  tell(value) {
    return this.names[Math.round(value)];
  }
}
