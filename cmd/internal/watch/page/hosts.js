// Hosts: this machine and those that are joined, and the programs of all of them.
import { el, Table } from "./dom.js";
import { bytes, clock, percent } from "./format.js";

export class Hosts {
  // label(program) is what a program is called; choose(address) shows it.
  constructor(label, choose) {
    this.hosts = new Table([
      { name: "Host", first: true, text: (h) => h.name, tip: (h) => h.key || "this machine" },
      { name: "State", wrap: true, text: state, mark: (h) => ({ live: "good", connecting: "warn" }[h.state] || "bad") },
      { name: "Programs", number: true, text: (h) => ifLive(h, h.programs.length) },
      { name: "Processes", number: true, wide: true, text: (h) => ifLive(h, sum(h.programs, processes)) },
      { name: "In use", title: "Bytes of blocks in use, of all programs", number: true, wide: true,
        text: (h) => ifLive(h, bytes(sum(h.programs, (d) => d.bytes))), value: (h) => sum(h.programs, (d) => d.bytes) },
      { name: "CPUs", title: "Processors that were busy", number: true, text: (h) => ifLive(h, percent(h.machine?.utilisation)),
        value: (h) => h.machine?.utilisation || 0, share: (h) => (h.state === "live" ? h.machine?.utilisation : 0) },
    ], { key: (h) => h.key, caption: "Hosts", empty: "" });
    this.programs = new Table([
      { name: "Program", first: true, text: label, press: (d) => choose(d.address) },
      { name: "Host", text: (d) => d.where },
      { name: "State", text: condition, mark: (d) => marks[condition(d)] || "" },
      { name: "Processes", number: true, wide: true, text: processes },
      { name: "In use", number: true, text: (d) => bytes(d.bytes), value: (d) => d.bytes, share: (d) => d.bytes / d.limit },
      { name: "CPUs", title: "Processors that its processes kept busy", number: true, wide: true, text: (d) => cpus(d).toFixed(2), value: cpus },
    ], { key: (d) => d.address, caption: "Programs of all hosts", empty: "No Shoal program runs on these hosts." });
    this.problems = el("div");
    this.element = el("div", {}, this.hosts.element, this.problems, el("h3", {}, "Programs"), this.programs.element);
  }

  show(moment, programs) {
    const all = [{ key: "", name: `${moment.host}, here`, state: "live", machine: moment.machine }, ...moment.hosts];
    const rows = all.map((h) => ({ ...h, programs: programs.filter((d) => (d.host || "") === h.key && !d.gone && !d.lost) }));
    const name = new Map(all.map((h) => [h.key, h.name]));
    this.hosts.show(rows);
    const problems = rows.filter((h) => h.error).map((h) => `${h.name}: ${h.error}`), shape = JSON.stringify(problems);
    if (shape !== this.shape) {
      this.shape = shape;
      this.problems.replaceChildren(...problems.map((p) => el("p", { class: "note problem" }, p)));
    }
    this.programs.show(programs.map((d) => ({ ...d, where: name.get(d.host || "") || d.host })));
  }
}

function state(h) {
  if (h.state === "live") return "live";
  if (h.state === "connecting") return "connecting…";
  if (h.state === "failed") return "cannot be joined";
  return `no answer since ${clock(h.since)}`;
}

function ifLive(h, figure) {
  return h.state === "live" ? figure : "–";
}

function condition(d) {
  if (d.lost) return "no answer";
  if (d.gone) return "ended";
  if (d.error) return "does not answer";
  if ((d.deadlocks || []).some((l) => !l.doubt)) return "deadlock?";
  return "runs";
}

const marks = { runs: "good", "no answer": "bad", "does not answer": "bad", "deadlock?": "bad" };

const processes = (d) => (d.processes || []).length;
const cpus = (d) => sum(d.processes || [], (p) => p.cpus || 0);

function sum(list, of) {
  return list.reduce((n, x) => n + (of(x) || 0), 0);
}
