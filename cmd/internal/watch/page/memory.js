// Memory over time: the blocks in use, and what each process holds. Several processes may hold the
// same block, so the lines do not add up, and are not stacked.
import uPlot from "./uplot/uPlot.js";
import { el, text, attribute } from "./dom.js";
import { bytes, clock } from "./format.js";

const most = 8; // lines of processes

export class Memory {
  constructor() {
    this.samples = [];
    this.hiddenSeries = new Set();
    this.legend = el("ul", { class: "legend" });
    this.plot = el("div", { class: "plot", role: "img" });
    this.note = el("p", { class: "note" });
    this.element = el("div", {}, this.plot, this.legend, this.note);
    this.chart = null;
    new ResizeObserver(() => this.resize()).observe(this.plot);
  }

  reset(samples) {
    this.samples = samples;
  }

  add(moment) {
    if (moment.error) return;
    const domains = {};
    for (const d of moment.domains) {
      if (d.error) continue;
      const holds = {};
      for (const p of d.processes || []) holds[p.pid] = p.holds;
      const values = Object.create(null); // a program may call a number __proto__
      for (const q of d.queues || []) if (q.value !== undefined) for (const name of q.names || []) values[name] = q.value;
      domains[d.address] = { bytes: d.bytes, committed: d.committed, holds, values };
    }
    if (this.samples.at(-1)?.at === moment.at) return;
    this.samples.push({ at: moment.at, domains });
    if (this.samples.length > 1800) this.samples = this.samples.filter((_, i) => i >= 1200 || i % 2 === 0);
  }

  // show draws a domain; name(pid) is what a process is called.
  show(address, name) {
    const mine = this.samples.filter((s) => s.domains[address]);
    const top = new Map();
    for (const s of mine) {
      for (const [pid, n] of Object.entries(s.domains[address].holds)) top.set(pid, Math.max(n, top.get(pid) || 0));
    }
    for (const [pid, n] of top) if (n === 0) top.delete(pid);
    const now = mine.at(-1)?.domains[address].holds ?? {};
    const pids = [...top.keys()].sort((a, b) => (now[b] || 0) - (now[a] || 0) || top.get(b) - top.get(a)).slice(0, most).sort((a, b) => a - b);
    const series = [{ id: "used", label: "in use", get: (h) => h.bytes },
      ...pids.map((pid) => ({ id: pid, label: name(+pid), get: (h) => h.holds[pid] ?? null }))];
    const data = [mine.map((s) => s.at / 1000), ...series.map((s) => mine.map((m) => s.get(m.domains[address])))];
    this.draw(address, series, data);
    text(this.note, top.size > most ? `The ${most} of ${top.size} processes that hold most are drawn.`
      : "A block may have several holders, so the lines do not add up.");
    const last = mine.at(-1)?.domains[address];
    attribute(this.plot, "aria-label", last
      ? `Memory over time; now ${bytes(last.bytes)} in use; ` + series.slice(1)
        .map((s) => `${s.label} holds ${bytes(s.get(last) || 0)}`).join(", ")
      : "Memory over time; nothing yet");
    this.drawLegend(series, last);
  }

  // colours come from the style sheet, which knows the scheme.
  colour(i) {
    return getComputedStyle(document.documentElement).getPropertyValue(i === 0 ? "--ink" : `--series-${(i - 1) % most + 1}`).trim();
  }

  draw(address, series, data) {
    const shape = JSON.stringify([address, series.map((s) => [s.id, s.label]), this.scheme()]);
    if (this.chart && shape === this.shape) {
      this.chart.setData(data);
      return;
    }
    this.chart?.destroy();
    this.shape = shape;
    const css = getComputedStyle(document.documentElement);
    const muted = css.getPropertyValue("--muted").trim(), grid = css.getPropertyValue("--line").trim();
    const font = "12px system-ui, sans-serif";
    const axis = { stroke: muted, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    this.chart = new uPlot({
      ...this.size(),
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false } },
      scales: { x: { range: (_, min, max) => [Math.min(min, max - 5), max] }, y: { range: (_, __, max) => [0, Math.max(1024, max * 1.08)] } },
      axes: [
        { ...axis, values: (_, splits) => splits.map((s) => clock(s * 1000)), space: 90, incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200] },
        { ...axis, values: (_, splits) => splits.map((v) => bytes(v)), size: 76, incrs: powers() },
      ],
      series: [{}, ...series.map((s, i) => ({
        label: s.label, stroke: this.colour(i), width: i === 0 ? 1 : 2, dash: i === 0 ? [5, 4] : undefined,
        spanGaps: false, points: { show: (u) => u.data[0].length < 2 }, show: !this.hiddenSeries.has(s.id),
      }))],
    }, data, this.plot);
  }

  drawLegend(series, last) {
    const rows = series.map((s, i) => {
      const swatch = el("i", { class: i === 0 ? "dashed" : null });
      swatch.style.setProperty("--swatch", this.colour(i));
      return [s, i, swatch];
    });
    const shape = this.shape;
    if (this.legendShape !== shape) {
      this.legendShape = shape;
      this.legend.replaceChildren(...rows.map(([s, i, swatch]) => el("li", {}, el("button", {
        type: "button", "aria-pressed": String(!this.hiddenSeries.has(s.id)), title: "Show or hide this line",
        onclick: (e) => {
          const show = this.hiddenSeries.has(s.id);
          if (show) this.hiddenSeries.delete(s.id);
          else this.hiddenSeries.add(s.id);
          e.currentTarget.setAttribute("aria-pressed", String(show));
          this.chart.setSeries(i + 1, { show });
        },
      }, swatch, el("span", {}, s.label), el("b")))));
    }
    series.forEach((s, i) => text(this.legend.children[i].querySelector("b"), last ? bytes(s.get(last) || 0) : ""));
  }

  scheme() {
    return getComputedStyle(document.documentElement).getPropertyValue("--scheme").trim();
  }

  size() {
    return { width: Math.max(200, this.plot.clientWidth), height: this.plot.clientWidth < 500 ? 200 : 260 };
  }

  resize() {
    const size = this.size();
    if (this.chart && this.plot.clientWidth > 0 && (this.chart.width !== size.width || this.chart.height !== size.height)) {
      this.chart.setSize(size);
    }
  }
}

// powers are steps at which bytes read well.
function powers() {
  const all = [];
  for (let unit = 1; unit < 2 ** 50; unit *= 1024) for (let n = 1; n < 1024; n *= 2) all.push(n * unit);
  return all;
}
