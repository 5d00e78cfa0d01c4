// The wait-for graph: an arrow leads from a process that waits to one that can end the wait. Each
// part of the graph has a picture of its own; a suspected deadlock comes first and has a name.
import { el, svg, text, Table } from "./dom.js";

const mostNodes = 14, mostPictures = 12;

export class Waits {
  constructor() {
    let people;
    this.people = (p) => { people = p; };
    this.pictures = el("div", { class: "pictures" });
    this.note = el("p", { class: "note" });
    this.table = new Table([
      { name: "Process", first: true, text: (w) => people.name(w.pid), tip: (w) => `pid ${w.pid}` },
      { name: "Waits for", wrap: true, text: what },
      { name: "From", wrap: true, text: (w) => people.list(w.on, "") + (w.others ? (w.on.length ? ", others" : "others") : "") || "–", tip: (w) => people.longList(w.on) },
    ], { key: (w) => `${w.pid} ${w.for} ${w.block}`, caption: "Waits", empty: "No process waits for another one." });
    this.element = el("div", {}, this.pictures, this.table.element, this.note);
    new ResizeObserver(() => {
      if (this.last && this.pictures.clientWidth !== this.width) this.show(...this.last);
    }).observe(this.pictures);
  }

  show(domain, people) {
    this.last = [domain, people];
    this.people(people);
    const waits = domain.waits || [], deadlocks = domain.deadlocks || [];
    this.table.show(waits);
    const shape = JSON.stringify([waits.map((w) => [w.pid, w.for, w.block, w.name, w.on, w.others]), deadlocks, this.pictures.clientWidth,
      [...people.names]]);
    if (shape === this.shape) return;
    this.shape = shape;
    this.width = this.pictures.clientWidth;
    const parts = partsOf(waits);
    const circles = deadlocks.map((d) => ({ deadlock: d, pids: d.waits.map((w) => w.pid) }));
    const pictures = [];
    for (const part of parts) {
      const mine = circles.filter((c) => c.pids.every((p) => part.pids.has(p)));
      pictures.push({ part, mine });
    }
    pictures.sort((a, b) => b.mine.length - a.mine.length || b.part.waits.length - a.part.waits.length);
    this.pictures.hidden = pictures.length === 0;
    this.pictures.replaceChildren(...pictures.slice(0, mostPictures).map(({ part, mine }) =>
      picture(part, mine.map((c) => c.deadlock), people, this.width)));
    text(this.note, (pictures.length > mostPictures ? `${pictures.length - mostPictures} more parts of the graph are not drawn. ` : "")
      + (waits.length ? "A deadlock is suspected where two readings find a circle without progress. Goroutines that do not wait cannot be seen from outside." : ""));
    this.note.hidden = this.note.textContent === "";
  }
}

// what a process waits for, as errors say it.
export function what(w) {
  const where = w.name ? `“${w.name}”` : w.block;
  switch (w.for) {
    case "lock": return `the ${w.kind} ${where}`;
    case "readers": return `the readers of the ${w.kind} ${where}`;
    case "message": return `a message in ${w.kind} ${where}`;
    case "room": return `room in ${w.kind} ${where}`;
    case "permit": return `a permit of semaphore ${where}`;
    case "notification": return `a notification of cond ${where}`;
    case "barrier": case "event": return `the ${w.for} ${where}`;
  }
  return `${w.for} of ${w.kind} ${where}`;
}

// sentence names a deadlock.
export function sentence(deadlock, people) {
  return deadlock.waits.map((w, i) => {
    const next = deadlock.waits[(i + 1) % deadlock.waits.length];
    const has = w.for === "lock" ? "has" : "can give";
    return `${people.name(w.pid)} waits for ${what(w)}, which ${people.name(next.pid)} ${has}`;
  }).join("; ") + ".";
}

// partsOf splits the graph where nothing leads from one part to the other.
function partsOf(waits) {
  const group = new Map();
  const find = (p) => {
    while (group.get(p) !== p) p = group.get(p);
    return p;
  };
  const add = (p) => { if (!group.has(p)) group.set(p, p); };
  for (const w of waits) {
    add(w.pid);
    for (const on of w.on) {
      add(on);
      group.set(find(w.pid), find(on));
    }
  }
  const parts = new Map();
  for (const w of waits) {
    const root = find(w.pid);
    if (!parts.has(root)) parts.set(root, { waits: [], pids: new Set() });
    const part = parts.get(root);
    part.waits.push(w);
    part.pids.add(w.pid);
    for (const on of w.on) part.pids.add(on);
  }
  return [...parts.values()];
}

function picture(part, deadlocks, people, room) {
  const circle = new Set(); // edges of deadlocks
  for (const d of deadlocks) d.waits.forEach((w, i) => circle.add(`${w.pid} ${d.waits[(i + 1) % d.waits.length].pid}`));
  const pids = order(part, deadlocks);
  const left = Math.max(0, pids.length - mostNodes);
  pids.length = Math.min(pids.length, mostNodes);
  const edges = new Map();
  for (const w of part.waits) {
    for (const to of w.on) {
      if (!pids.includes(w.pid) || !pids.includes(to)) continue;
      const key = `${w.pid} ${to}`;
      if (!edges.has(key)) edges.set(key, { from: w.pid, to, names: new Set(), idle: true, bad: circle.has(key) });
      const e = edges.get(key);
      e.names.add(w.name || (w.for === "lock" ? w.kind : w.for));
      if (!["message", "notification", "event"].includes(w.for)) e.idle = false;
    }
  }
  const first = part.waits[0]; // which says it for all, as a rule
  const alike = !deadlocks.length && part.waits.every((w) => w.for === first.for && w.block === first.block);
  const doubt = deadlocks.length > 0 && deadlocks.every((d) => d.doubt);
  const kind = deadlocks.length ? (doubt ? "doubt" : "dead") : "";
  const title = !deadlocks.length ? `${people.list([...new Set(part.waits.map((w) => w.pid))].slice(0, 4))} wait${part.waits.length > 1 ? "" : "s"}${alike ? ` for ${what(first)}` : ""}`
    : doubt ? "Perhaps a deadlock" : "Suspected deadlock";
  const figure = el("figure", { "data-kind": kind }, el("figcaption", {}, el("b", {}, title),
    ...deadlocks.map((d) => el("span", {}, ` ${sentence(d, people)}${d.doubt ? ` But ${d.doubt}.` : ""}`)),
    ...(left ? [el("span", {}, ` ${left} more processes are not drawn.`)] : [])));
  const width = Math.min(560, Math.max(260, room - 26));
  const columns = twoColumns(pids, edges);
  const height = columns ? Math.max(90, 56 * Math.max(...columns.map((c) => c.length)) + 16)
    : pids.length <= 2 ? 130 : Math.min(360, 170 + 22 * pids.length);
  const at = columns ? placesInColumns(columns, width, height) : places(pids, edges, width, height);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": [...edges.values()].map((e) => `${people.name(e.from)} waits for ${people.name(e.to)}: ${[...e.names].join(", ")}`).join("; ") });
  drawing.append(svg("defs", {}, ...["idle", "wait", "dead"].map((name) => svg("marker", { id: `arrow-${name}`, viewBox: "0 0 10 10", refX: 9, refY: 5,
    markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, svg("path", { d: "M0 0 10 5 0 10z", class: `head ${name}` })))));
  const labels = [];
  const taken = [];
  for (const e of edges.values()) {
    const look = e.bad ? "dead" : e.idle ? "idle" : "wait";
    const { path, middle } = curve(at.get(e.from), at.get(e.to), edges.has(`${e.to} ${e.from}`));
    drawing.append(svg("path", { d: path, class: `edge ${look}`, "marker-end": `url(#arrow-${look})` }));
    const name = clip([...e.names].join(", "), 18);
    if (alike || edges.size > 8 && !e.bad) continue; // the caption or the table has their names
    const half = name.length * 3.4 + 5;
    while (taken.some((t) => Math.abs(t.x - middle.x) < half + t.half && Math.abs(t.y - middle.y) < 16)) middle.y += 8;
    taken.push({ ...middle, half });
    labels.push(svg("g", { class: `label ${look}` },
      svg("rect", { x: middle.x - half, y: middle.y - 9, width: 2 * half, height: 18, rx: 9 }),
      svg("text", { x: middle.x, y: middle.y + 4, "text-anchor": "middle" }, name)));
  }
  drawing.append(...labels);
  const bad = new Set(deadlocks.flatMap((d) => d.waits.map((w) => w.pid)));
  for (const pid of pids) {
    const { x, y } = at.get(pid);
    drawing.append(svg("g", { class: `node${bad.has(pid) ? " dead" : ""}` }, svg("title", {}, people.long(pid)),
      svg("rect", { x: x - nodeWidth / 2, y: y - nodeHeight / 2, width: nodeWidth, height: nodeHeight, rx: 7 }),
      svg("text", { x, y: y - 1, "text-anchor": "middle" }, clip(people.name(pid), 12)),
      svg("text", { x, y: y + 12, "text-anchor": "middle", class: "pid" }, String(pid))));
  }
  figure.append(drawing);
  return figure;
}

const nodeWidth = 92, nodeHeight = 36;

// order puts the processes of a deadlock first and in its order, and then those with most arrows.
function order(part, deadlocks) {
  const weight = new Map([...part.pids].map((p) => [p, 0]));
  for (const w of part.waits) for (const p of [w.pid, ...w.on]) weight.set(p, weight.get(p) + 1);
  const first = [...new Set(deadlocks.flatMap((d) => d.waits.map((w) => w.pid)))];
  return [...first, ...[...part.pids].filter((p) => !first.includes(p)).sort((a, b) => weight.get(b) - weight.get(a) || a - b)];
}

// twoColumns are those who wait and those they wait for, or null where somebody is both.
function twoColumns(pids, edges) {
  const from = new Set(), to = new Set();
  for (const e of edges.values()) {
    from.add(e.from);
    to.add(e.to);
  }
  if ([...from].some((p) => to.has(p))) return null;
  return [pids.filter((p) => !to.has(p)), pids.filter((p) => to.has(p))].map((c) => c.sort((a, b) => a - b)).filter((c) => c.length);
}

function placesInColumns(columns, width, height) {
  const at = new Map();
  columns.forEach((column, i) => column.forEach((p, j) => at.set(p, {
    x: columns.length === 1 ? width / 2 : i === 0 ? nodeWidth / 2 + 4 : width - nodeWidth / 2 - 4,
    y: (height * (j + 0.5)) / column.length,
  })));
  return at;
}

// places are on an ellipse, or around the one process to which most arrows lead.
function places(pids, edges, width, height) {
  const at = new Map(), cx = width / 2, cy = height / 2;
  if (pids.length === 1) return at.set(pids[0], { x: cx, y: cy });
  const into = new Map(pids.map((p) => [p, 0]));
  for (const e of edges.values()) if (e.from !== e.to) into.set(e.to, into.get(e.to) + 1);
  const hub = pids.length > 3 ? pids.find((p) => into.get(p) >= pids.length - 2) : undefined;
  const ring = pids.filter((p) => p !== hub);
  const start = pids.length === 2 ? Math.PI : -Math.PI / 2;
  ring.forEach((p, i) => {
    const angle = start + (2 * Math.PI * i) / ring.length;
    at.set(p, { x: cx + (width / 2 - nodeWidth / 2 - 12) * Math.cos(angle), y: cy + (height / 2 - nodeHeight / 2 - 14) * Math.sin(angle) });
  });
  if (hub !== undefined) at.set(hub, { x: cx, y: cy });
  return at;
}

// curve leads from the edge of one node to that of another; two opposite arrows bend apart.
function curve(a, b, both) {
  if (a === b) {
    const x = a.x, y = a.y - nodeHeight / 2;
    return { path: `M${x - 16} ${y}C${x - 34} ${y - 38} ${x + 34} ${y - 38} ${x + 16} ${y}`, middle: { x, y: y - 28 } };
  }
  const dx = b.x - a.x, dy = b.y - a.y, d = Math.hypot(dx, dy) || 1;
  const bend = both ? Math.min(44, d * 0.22) : 0;
  const middle = { x: (a.x + b.x) / 2 - (dy / d) * bend, y: (a.y + b.y) / 2 + (dx / d) * bend };
  const control = { x: (a.x + b.x) / 2 - (dy / d) * 2 * bend, y: (a.y + b.y) / 2 + (dx / d) * 2 * bend };
  const p = border(a, control), q = border(b, control);
  return { path: `M${p.x} ${p.y}Q${control.x} ${control.y} ${q.x} ${q.y}`, middle };
}

// border is where the line from the middle of a node to a point leaves the node.
function border(node, to) {
  const dx = to.x - node.x, dy = to.y - node.y;
  const scale = Math.min((nodeWidth / 2 + 3) / (Math.abs(dx) || 1e-9), (nodeHeight / 2 + 3) / (Math.abs(dy) || 1e-9));
  return { x: +(node.x + dx * scale).toFixed(1), y: +(node.y + dy * scale).toFixed(1) };
}

function clip(s, n) {
  return s.length > n ? s.slice(0, n - 1) + "…" : s;
}
