// Loaders: what each worker and the trainer have done in the last seconds, where the last batches
// have waited, and who waits for whom, in words.
import { el, svg, text, attribute } from "./dom.js";
import { seconds, percent, plural } from "./format.js";

const shown = 16; // batches

const stages = [
  { key: "worker", name: "for a worker", title: "asked for, and no worker had begun with it" },
  { key: "load", name: "being loaded", title: "from its first sample to its last one" },
  { key: "queue", name: "behind others", title: "ready, while the trainer worked on batches before it" },
  { key: "trainer", name: "for the trainer", title: "next in turn, until the trainer took it" },
];

export class Loaders {
  constructor() {
    this.views = new Map(); // by block
    this.list = el("div", { class: "loaders" });
    this.note = el("p", { class: "note" });
    this.element = el("div", {}, this.list, this.note);
  }

  show(domain, people) {
    const all = domain.loaders || [];
    for (const [block, v] of this.views) {
      if (all.some((l) => l.block === block)) continue;
      v.element.remove();
      this.views.delete(block);
    }
    all.forEach((l, i) => {
      let v = this.views.get(l.block);
      if (!v) this.views.set(l.block, v = new Loader());
      if (this.list.children[i] !== v.element) this.list.insertBefore(v.element, this.list.children[i] || null);
      v.show(l, people, all.length > 1);
    });
    text(this.note, `Each column is ${seconds((all[0]?.step || 0) / 1e6)}, now at the right. data.Options.Trace writes each sample to a file for Perfetto.`);
  }
}

class Loader {
  constructor() {
    this.title = el("h3");
    this.verdict = el("p", { class: "verdict" });
    this.lanes = el("div", { class: "lanes" });
    this.key = el("ul", { class: "swatches" }, swatch("trainer-working", "trains"), swatch("trainer-idle", "starves"),
      swatch("working", "loads"), swatch("blocked", "waits for room"), swatch("idle", "waits for a task"));
    this.where = el("p", { class: "where" });
    this.ways = el("div", { class: "lanes ways" });
    this.stages = el("ul", { class: "swatches" }, ...stages.map((s) => swatch(s.key, s.name, s.title)));
    this.batches = el("div", {}, el("h3", {}, "Where the last batches waited"), this.where, this.ways, this.stages);
    this.element = el("section", { class: "loader", "aria-label": "Loader" }, this.title, this.verdict, this.lanes, this.key, this.batches);
  }

  show(l, people, many) {
    this.element.dataset.block = l.block;
    text(this.title, (l.workers ? `Loader with ${plural(l.workers, "worker")}` : "Loader without workers")
      + (many ? `, of ${people.long(l.consumer.pid)}` : ""));
    text(this.verdict, l.verdict.replaceAll(" %", "\u00a0%")); // a line does not end between them
    attribute(this.verdict, "data-kind", { workers: "warn", order: "warn", consumer: "good" }[l.bound] || null);
    const tracks = [...(l.consumer.state ? [{ name: "trainer", trainer: true, ...l.consumer }] : []),
      ...(l.workers ? l.tracks.map((t, i) => ({ name: `worker ${i}`, apart: t.pid !== l.consumer.pid, ...t })) : [])];
    rows(this.lanes, tracks.length, () => {
      const lane = { name: el("span", { class: "who" }), says: el("small") };
      lane.paths = ["idle", "blocked", "working"].map((a) => svg("path", { class: a }));
      lane.strip = svg("svg", { role: "img", preserveAspectRatio: "none" }, ...lane.paths);
      lane.element = el("div", { class: "lane" }, lane.name, lane.strip, lane.says);
      return lane;
    }).forEach((lane, i) => this.lane(lane, tracks[i], l, people));
    this.showBatches(l);
  }

  lane(lane, t, l, people) {
    text(lane.name, t.name);
    attribute(lane.name, "title", t.apart || t.trainer ? people.long(t.pid) : null);
    attribute(lane.element, "data-state", t.state);
    attribute(lane.element, "data-trainer", !!t.trainer);
    const n = t.working.length;
    attribute(lane.strip, "viewBox", `0 0 ${n} 1`);
    const paths = ["", "", ""];
    let sums = [0, 0, 0];
    for (let i = 0; i < n; i++) {
      let from = 1; // from the ground up: work, waits for room, waits for a task
      [t.working[i], t.blocked[i], t.idle[i]].forEach((part, a) => {
        const height = Math.min(part / l.step, from);
        if (height > 0) paths[2 - a] += `M${i} ${from.toFixed(3)}h1v${(-height).toFixed(3)}h-1z`;
        from -= height;
        sums[a] += part;
      });
    }
    lane.paths.forEach((p, a) => attribute(p, "d", paths[a] || "M0 0"));
    const whole = sums[0] + sums[1] + sums[2];
    const busy = whole ? sums[0] / whole : 0;
    const says = `${percent(busy)} busy, ${this.says(t)}`
      + (t.deaths ? `; ${plural(t.deaths, "worker")} killed here before, ${seconds(t.died / 1e6)} ago` : "");
    text(lane.says, says);
    attribute(lane.strip, "aria-label", `${t.name}: ${says}`);
  }

  says(t) {
    const since = t.for >= 1e6 ? ` for ${seconds(t.for / 1e6)}` : "", batch = `batch ${t.batch} of epoch ${t.epoch}`; // short ones flicker
    if (t.state === "dead") return `dead: killed at ${batch}`;
    if (t.state === "ended") return `has ended`;
    if (t.trainer) return t.state === "working" ? `uses ${batch}${since}` : `waits for a batch${since}`;
    return { working: `loads ${batch}${since}`, blocked: `waits for room${since}`, idle: `waits for a task${since}` }[t.state] || "";
  }

  showBatches(l) {
    const all = l.batches.map((b, i) => {
      const before = i ? l.batches[i - 1].taken : Infinity;
      const turn = Math.min(b.ready, Math.max(b.taken, before)); // when the one before it was taken
      const began = b.began && b.began <= b.asked ? b.began : b.asked;
      return { ...b, parts: [b.asked - began, began - b.ready, b.ready - turn, turn - b.taken].map((n) => Math.max(0, n)) };
    });
    const last = all.slice(-shown);
    this.batches.hidden = !last.length;
    if (!last.length) return;
    const mean = stages.map((_, s) => all.reduce((sum, b) => sum + b.parts[s], 0) / all.length / 1e6);
    text(this.where, `On average, of the last ${all.length}: ${seconds(mean[0])} for a worker, ${seconds(mean[1])} being loaded, ${seconds(mean[2])} `
      + `behind others, ${seconds(mean[3])} for the trainer.`);
    const from = Math.max(...last.map((b) => b.asked)), to = Math.min(...last.map((b) => b.taken)), span = Math.max(1, from - to);
    rows(this.ways, last.length, () => {
      const way = { name: el("span", { class: "who" }), says: el("small") };
      way.parts = stages.map((s) => svg("rect", { class: s.key, y: 0, height: 1 }));
      way.strip = svg("svg", { role: "img", preserveAspectRatio: "none", viewBox: "0 0 1000 1" }, ...way.parts);
      way.element = el("div", { class: "lane" }, way.name, way.strip, way.says);
      return way;
    }).forEach((way, i) => {
      const b = last[i];
      text(way.name, `batch ${b.batch}`);
      attribute(way.name, "title", `epoch ${b.epoch}`);
      let at = b.asked;
      b.parts.forEach((part, s) => {
        attribute(way.parts[s], "x", (1000 * (from - at) / span).toFixed(2));
        attribute(way.parts[s], "width", (1000 * part / span).toFixed(2));
        at -= part;
      });
      text(way.says, seconds((b.asked - b.taken) / 1e6));
      attribute(way.strip, "aria-label", stages.map((s, n) => `${s.name} ${seconds(b.parts[n] / 1e6)}`).join(", "));
    });
  }
}

// rows keeps as many rows in a place as there are, and returns them.
function rows(place, n, make) {
  place.rows ||= [];
  while (place.rows.length > n) place.rows.pop().element.remove();
  while (place.rows.length < n) {
    const row = make();
    place.rows.push(row);
    place.append(row.element);
  }
  return place.rows;
}

function swatch(key, name, title) {
  return el("li", { title: title || null }, el("i", { class: key }), name);
}
