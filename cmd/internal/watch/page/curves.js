// Curves: the numbers of a program that have a name, a loss say, each over time on a scale of its
// own. A program stores them in a Latest of a float64.
import uPlot from "./uplot/uPlot.js";
import { el, text, attribute } from "./dom.js";
import { clock } from "./format.js";

const most = 8;

export class Curves {
  constructor() {
    this.charts = new Map(); // by name
    this.grid = el("div", { class: "curves" });
    this.note = el("p", { class: "note" });
    this.element = el("div", {}, this.grid, this.note);
    new ResizeObserver(() => this.resize()).observe(this.grid);
  }

  show(address, samples) {
    const mine = samples.filter((s) => s.domains[address]);
    const names = [...new Set(mine.flatMap((s) => Object.keys(s.domains[address].values || {})))].sort();
    const drawn = names.slice(0, most);
    const shape = JSON.stringify([address, drawn, this.css("--scheme")]);
    if (shape !== this.shape) {
      this.shape = shape;
      for (const c of this.charts.values()) c.chart?.destroy();
      this.charts.clear();
      this.grid.replaceChildren(...drawn.map((name, i) => this.figure(name, i)));
    }
    const times = mine.map((s) => s.at / 1000);
    for (const name of drawn) {
      const values = mine.map((s) => s.domains[address].values || {}).map((v) => (Object.hasOwn(v, name) ? v[name] : null));
      const c = this.charts.get(name), known = values.filter((v) => v !== null), last = known.at(-1);
      text(c.now, last === undefined ? "" : number(last));
      attribute(c.plot, "aria-label", known.length
        ? `${name} over time; now ${number(last)}, from ${number(Math.min(...known))} to ${number(Math.max(...known))}`
        : `${name} over time; nothing yet`);
      if (c.chart) c.chart.setData([times, values]);
      else c.chart = this.draw(c, [times, values]);
    }
    text(this.note, names.length > most ? `${most} of ${names.length} numbers are drawn.`
      : "Numbers that have a name: a Latest[float64] that the program has bound.");
  }

  figure(name, i) {
    const c = { i, plot: el("div", { class: "plot", role: "img" }), now: el("b"), chart: null };
    this.charts.set(name, c);
    return el("figure", { class: "curve", "data-name": name }, el("figcaption", {}, el("span", {}, name), c.now), c.plot);
  }

  draw(c, data) {
    const muted = this.css("--muted"), grid = this.css("--line"), font = "12px system-ui, sans-serif";
    const axis = { stroke: muted, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    return new uPlot({
      ...this.size(c),
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false } },
      scales: { x: { range: (_, min, max) => [Math.min(min, max - 5), max] } },
      axes: [
        { ...axis, values: (_, splits) => splits.map((s) => clock(s * 1000)), space: 90, size: 30 },
        { ...axis, values: (_, splits) => splits.map(number), size: 64, space: 24 },
      ],
      series: [{}, { stroke: this.css(`--series-${c.i % most + 1}`), width: 2, spanGaps: false, points: { show: (u) => u.data[0].length < 2 } }],
    }, data, c.plot);
  }

  css(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  size(c) {
    return { width: Math.max(200, c.plot.clientWidth), height: 200 };
  }

  resize() {
    for (const c of this.charts.values()) {
      if (c.chart && c.plot.clientWidth > 0 && c.chart.width !== c.plot.clientWidth) c.chart.setSize(this.size(c));
    }
  }
}

// number writes four digits that mean something.
function number(v) {
  if (v === 0) return "0";
  const size = Math.abs(v);
  return size >= 1e6 || size < 1e-4 ? v.toExponential(2) : String(Number(v.toPrecision(4)));
}
