// A program in a line of figures.
import { el, text, bar } from "./dom.js";
import { bytes, count, percent, plural, rate } from "./format.js";

const figures = [
  ["Committed", (d) => bytes(d.committed), (d) => `${percent(d.committed / d.limit)} of ${bytes(d.limit)}`,
    (d) => d.committed / d.limit],
  ["In use", (d) => bytes(d.bytes), (d) => plural(d.blocks, "block")],
  ["Allocated", (d) => `${rate(d.allocs_per_second)}/s`, () => "blocks"],
  ["Copied", (d) => `${bytes(d.copied_per_second)}/s`, () => "in and out"],
  ["In transit", (d) => count(d.in_transit), () => "in messages"],
  ["Processes", (d) => count((d.processes || []).length), (d) => `${(d.processes || [])
    .reduce((sum, p) => sum + (p.cpus || 0), 0).toFixed(2)} CPUs busy`],
  ["Reaped", (d) => count(d.reaped), (d) => d.dropped ? `dead; ${plural(d.dropped, "message")} lost` : "dead workers"],
  ["Restarts", (d) => count(d.restarts || 0), (d) => d.retries ? `of workers; ${plural(d.retries, "task")} run again` : "of workers"],
];

export class Overview {
  constructor() {
    this.cards = figures.map(([name, , , share]) => {
      const parts = { value: el("b"), note: el("small"), track: share ? bar(0) : null };
      parts.element = el("div", { class: "card" }, el("span", {}, name), parts.value, parts.note);
      if (parts.track) parts.element.append(parts.track);
      return parts;
    });
    this.element = el("div", { class: "cards" }, ...this.cards.map((c) => c.element));
  }

  show(domain) {
    figures.forEach(([, value, note, share], i) => {
      const c = this.cards[i];
      text(c.value, value(domain));
      text(c.note, note(domain));
      if (share) {
        const s = Math.min(1, share(domain) || 0);
        c.track.firstChild.style.width = `${100 * s}%`;
        c.track.dataset.level = s > 0.9 ? "high" : s > 0.75 ? "some" : "";
      }
    });
  }
}
