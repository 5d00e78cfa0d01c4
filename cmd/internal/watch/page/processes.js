// The processes of a program, as a tree.
import { Table } from "./dom.js";
import { bytes, plural, rate } from "./format.js";

export class Processes {
  constructor() {
    this.most = 1;
    this.table = new Table([
      { name: "Process", first: true, text: (p) => p.name || "?", tip: (p) => [`pid ${p.pid}`, p.function && `function ${p.function}`, p.seat >= 0 && `seat ${p.seat}`].filter(Boolean).join(", "), indent: (p) => p.depth },
      { name: "PID", number: true, text: (p) => p.pid },
      { name: "Role", wide: true, text: (p) => p.role || "" },
      { name: "Rank", number: true, wide: true, text: (p) => p.rank ?? "" },
      { name: "State", text: (p) => p.condition, mark: (p) => marks[p.condition] || "" },
      { name: "Holds", title: "Bytes of the blocks that it holds; others may hold them as well", number: true,
        text: (p) => bytes(p.holds), value: (p) => p.holds, tip: (p) => p.holds_blocks ? `${plural(p.holds_blocks, "block")}; ${bytes(p.holds_alone)} that nobody else holds` : null, share: (p) => p.holds / this.most },
      { name: "CPUs", title: "Processors that it kept busy", number: true, text: (p) => (p.cpus || 0).toFixed(2),
        value: (p) => p.cpus, share: (p) => p.cpus / Math.max(1, p.gomaxprocs) },
      { name: "Budget", title: "Threads that it was told to have (GOMAXPROCS)", number: true, wide: true,
        text: (p) => p.gomaxprocs || "–", value: (p) => p.gomaxprocs },
      { name: "Threads", title: "Of the kernel's", number: true, wide: true, text: (p) => p.threads },
      { name: "Runnable", title: "Threads that ran or could, on average", number: true, wide: true, text: (p) => p.runnable },
      { name: "Sent away/s", title: "How often the kernel gave its processor to others, a second", number: true, wide: true,
        text: (p) => rate(p.involuntary_per_second), value: (p) => p.involuntary_per_second },
    ], { key: (p) => p.pid, caption: "Processes", empty: "No process." });
    this.element = this.table.element;
  }

  show(domain) {
    const stuck = new Set((domain.deadlocks || []).filter((d) => !d.doubt).flatMap((d) => d.waits.map((w) => w.pid)));
    const waiting = new Set((domain.waits || []).map((w) => w.pid));
    const rows = tree(domain.processes || []);
    for (const p of rows) { // that a process waits, only the program knows; that it is stopped, the kernel
      p.condition = p.state !== "running" ? p.state || "" : stuck.has(p.pid) ? "deadlock?" : waiting.has(p.pid) ? "waits" : "runs";
    }
    this.most = Math.max(1, ...rows.map((p) => p.holds));
    for (const [i, c] of this.table.columns.entries()) { // what no process has is no column
      if (["Role", "Rank", "State"].includes(c.name)) {
        this.table.element.classList.toggle(`no-${i + 1}`, rows.every((p) => c.text(p) === ""));
      }
    }
    this.table.show(rows);
  }
}

const marks = { runs: "good", stopped: "warn", dead: "bad", "deadlock?": "bad" };

// tree orders processes so that each is below its parent. Without parents the first one has the
// others.
export function tree(processes) {
  const pids = new Set(processes.map((p) => p.pid));
  const children = new Map();
  const roots = [];
  processes.forEach((p, i) => {
    const parent = p.parent ?? (i > 0 ? processes[0].pid : undefined);
    if (parent !== undefined && parent !== p.pid && pids.has(parent)) {
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(p);
    } else roots.push(p);
  });
  const rows = [];
  const seen = new Set();
  const walk = (p, depth) => {
    if (seen.has(p.pid)) return;
    seen.add(p.pid);
    rows.push({ ...p, depth });
    for (const c of children.get(p.pid) || []) walk(c, depth + 1);
  };
  for (const r of roots) walk(r, 0);
  for (const p of processes) walk(p, 0);
  return rows;
}
