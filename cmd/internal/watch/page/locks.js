// Locks, and what else processes wait at: who has it, and who wants it.
import { el, text, Table } from "./dom.js";
import { plural } from "./format.js";
import { called } from "./people.js";

export class Locks {
  constructor() {
    let people;
    this.people = (p) => { people = p; };
    const held = (l) => {
      if (l.owner) return people.name(l.owner) + (l.dead ? ", which has died" : "");
      return (l.shares || []).map((s) => people.name(s.pid) + (s.count > 1 ? ` ×${s.count}` : "")).join(", ") || "–";
    };
    this.table = new Table([
      { name: "Lock", first: true, text: called, tip: (l) => `${l.kind}, ${l.block}` },
      { name: "Kind", wide: true, text: (l) => l.kind },
      { name: "Has it", wrap: true, text: held, tip: (l) => l.owner ? people.long(l.owner) : null, mark: (l) => l.dead ? "bad" : "" },
      { name: "Wait for it", wrap: true, text: (l) => people.list(waiting(l)), tip: (l) => people.longList(waiting(l)),
        mark: (l) => waiting(l).length ? "warn" : "" },
      { name: "State", wrap: true, text: state, mark: (l) => l.lost || l.broken ? "bad" : "" },
    ], { key: (l) => l.block, caption: "Locks", empty: "This program has no lock." });
    this.note = el("p", { class: "note", hidden: true });
    this.element = el("div", {}, this.table.element, this.note);
  }

  show(domain, people) {
    this.people(people);
    this.table.show(domain.locks || []);
    this.note.hidden = !domain.locks_left;
    text(this.note, `${plural(domain.locks_left || 0, "lock")} more, free, are not listed.`);
  }
}

function waiting(l) {
  return [...(l.waiting || []), ...(l.drained || [])];
}

function state(l) {
  if (l.lost) return "lost by a death";
  if (l.broken) return "broken";
  switch (l.kind) {
    case "semaphore": return `${l.permits || 0} of ${plural(l.limit || 0, "permit")} free`;
    case "barrier": return `${l.arrived || 0} of ${l.limit || 0} are there`;
    case "event": return l.set ? "set" : "not set";
    case "cond": return "";
  }
  if (l.owner) return "locked";
  return l.shares?.length ? "read" : "free";
}
