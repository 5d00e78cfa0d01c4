// Blocks: by age, state, size and kind, the largest ones, and where they were allocated.
import { el, text, Table, bar } from "./dom.js";
import { bytes, plural, seconds } from "./format.js";

const ages = [["under_1s", "under 1 s"], ["under_1m", "under 1 min"], ["older", "older"], ["unknown", "unknown"]];
const states = [["held", "held by processes"], ["in_transit", "in messages only"], ["ending", "about to be free"], ["idle", "free, kept warm"]];

export class Blocks {
  constructor() {
    let people;
    this.people = (p) => { people = p; };
    this.age = new Shares("By age", "Since it was seen first");
    this.state = new Shares("By holder", "Who keeps it");
    this.kind = new Shares("By kind", "What it is");
    this.size = new Shares("By size", "Classes of sizes, in use");
    this.dtype = new Shares("By dtype", "Tensors of processes with SHOAL_DEBUG=lifetime");
    this.shape = new Shares("By shape", "Tensors of processes with SHOAL_DEBUG=lifetime");
    this.largest = new Table([
      { name: "Block", first: true, text: (b) => b.names?.length ? b.names.join(", ") : b.block, tip: (b) => b.block },
      { name: "Kind", wide: true, text: (b) => b.dtype ? `${b.dtype} ${b.shape}` : b.kind, tip: (b) => b.kind },
      { name: "Bytes", number: true, text: (b) => bytes(b.bytes), value: (b) => b.bytes, tip: (b) => `of at most ${bytes(b.size)}` },
      { name: "Age", number: true, title: "For how long it was seen; + where it was there before", value: (b) => b.age_seconds,
        text: (b) => seconds(b.age_seconds) + (b.age_known ? "" : " +") },
      { name: "Holders", wrap: true, text: (b) => people.list(b.pids, b.in_transit ? "messages" : "–"), tip: (b) => people.longList(b.pids) },
      { name: "In messages", number: true, wide: true, text: (b) => b.in_transit || "–", value: (b) => b.in_transit },
      { name: "Site", wide: true, text: (b) => site(b.stack), tip: (b) => b.stack || null },
    ], { key: (b) => b.block, caption: "The largest blocks", empty: "No block is in use.", class: "tall" });
    this.sites = el("div", { class: "sites" });
    this.note = el("p", { class: "note" });
    this.element = el("div", {}, el("div", { class: "shares" }, this.age.element, this.state.element, this.kind.element, this.size.element,
      this.dtype.element, this.shape.element),
      el("h3", {}, "Largest"), this.largest.element, this.sites, this.note);
  }

  show(domain, people) {
    this.people(people);
    const s = domain.summary || {};
    this.age.show(ages.map(([key, name]) => ({ name, ...s.by_age?.[key] })));
    this.state.show(states.map(([key, name]) => ({ name, ...s.by_state?.[key] })));
    this.kind.show(Object.entries(s.by_kind || {}).map(([name, c]) => ({ name, ...c })));
    this.size.show(packed(s.by_size || []));
    const shapes = s.by_shape || [];
    this.dtype.element.hidden = this.shape.element.hidden = !shapes.length;
    this.dtype.show(Object.entries(s.by_dtype || {}).map(([name, c]) => ({ name, ...c })).sort((a, b) => b.bytes - a.bytes));
    this.shape.show(packed(shapes, (r) => `${r.dtype} ${r.shape}`));
    this.largest.show(s.largest || []);
    const sites = s.by_site || [];
    this.largest.element.classList.toggle("no-7", !(s.largest || []).some((b) => b.stack));
    this.showSites(sites);
    text(this.note, s.tellers ? `Dtypes, shapes and sites are told by the processes that have SHOAL_DEBUG=lifetime, here ${s.tellers}.`
      + (s.untold ? ` There was no room for ${plural(s.untold, "block")}.` : "")
      : "Processes that are started with SHOAL_DEBUG=lifetime tell the dtypes and shapes of the tensors that they hold, and where they have allocated them.");
  }

  showSites(sites) {
    const shape = JSON.stringify(sites);
    if (shape === this.sitesShown) return;
    this.sitesShown = shape;
    const open = new Set([...this.sites.querySelectorAll("details[open]")].map((d) => d.dataset.site));
    const places = new Map(); // one line of a program may have several stacks within the library
    for (const s of sites) {
      const name = site(s.stack), p = places.get(name) || { name, bytes: 0, blocks: 0, stacks: [] };
      places.set(name, { ...p, bytes: p.bytes + s.bytes, blocks: p.blocks + s.blocks, stacks: [...p.stacks, s] });
    }
    const all = [...places.values()].sort((a, b) => b.bytes - a.bytes);
    this.sites.replaceChildren(...(all.length ? [el("h3", {}, "Where allocated or received")] : []), ...all.map((p) =>
      el("details", { "data-site": p.name, open: open.has(p.name) },
        el("summary", {}, el("b", {}, bytes(p.bytes)), ` in ${plural(p.blocks, "block")} – ${p.name}`),
        ...p.stacks.flatMap((s) => [...(p.stacks.length > 1 ? [el("p", { class: "note" }, `${bytes(s.bytes)} in ${plural(s.blocks, "block")}`)] : []),
          el("pre", {}, s.stack)]))));
  }
}

// site is the first call of a stack that is not the library's own, by its function. Each call has
// two lines, its function and its place.
function site(stack) {
  if (!stack) return "";
  const lines = stack.split("\n").map((l) => l.trim()).filter(Boolean), calls = [];
  for (let i = 0; i + 1 < lines.length; i += 2) calls.push({ name: lines[i], place: lines[i + 1].split("/").at(-1) });
  const first = calls.find((c) => !own.test(c.name)) || calls[0];
  return first ? `${first.name.split("/").at(-1)}, ${first.place}` : lines[0] || "";
}

const own = /^github\.com\/shoal-mp\/shoal(\.|\/(?!cmd\/|examples\/))|\(\*Loader\)|^runtime\./;

const sizeName = (s) => (s.size ? `≤ ${bytes(s.size)}` : "no bytes");

// packed makes at most eight rows of a list: those with most bytes, in its order, and the others.
function packed(list, name = sizeName) {
  const rows = list.map((s, order) => ({ name: name(s), order, blocks: s.blocks, bytes: s.bytes }));
  if (rows.length <= 8) return rows;
  rows.sort((a, b) => b.bytes - a.bytes);
  const rest = rows.splice(7).reduce((r, s) => ({ name: "others", order: Infinity, blocks: r.blocks + s.blocks, bytes: r.bytes + s.bytes }),
    { blocks: 0, bytes: 0 });
  return [...rows.sort((a, b) => a.order - b.order), rest];
}

// Shares are rows with a bar each.
class Shares {
  constructor(title, tip) {
    this.rows = el("dl");
    this.element = el("div", { class: "share" }, el("h3", { title: tip }, title), this.rows);
  }

  show(list) {
    list = list.filter((r) => r.blocks > 0);
    const whole = list.reduce((sum, r) => sum + r.bytes, 0) || 1;
    const shape = list.map((r) => r.name).join("\n");
    if (shape !== this.shape) {
      this.shape = shape;
      this.rows.replaceChildren(...list.map((r) => el("div", {}, el("dt", {}, r.name), el("dd", {}, el("b"), el("small")), bar(0))));
      if (!list.length) this.rows.replaceChildren(el("p", { class: "none" }, "–"));
    }
    list.forEach((r, i) => {
      const row = this.rows.children[i];
      text(row.querySelector("b"), bytes(r.bytes));
      text(row.querySelector("small"), plural(r.blocks, "block"));
      row.querySelector(".bar-track i").style.width = `${100 * r.bytes / whole}%`;
    });
  }
}
