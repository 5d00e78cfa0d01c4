// Queues: how full, how fast, and who waits at which end.
import { el, text, Table } from "./dom.js";
import { count, plural, rate } from "./format.js";
import { called } from "./people.js";

export class Queues {
  constructor() {
    let people;
    this.people = (p) => { people = p; };
    this.table = new Table([
      { name: "Queue", first: true, text: called, tip: (q) => `${q.block}; ${plural(q.gets, "message")} received so far` },
      { name: "Messages", wide: true, text: (q) => q.label || "" },
      { name: "Depth", number: true, text: (q) => `${count(q.depth)} / ${count(q.capacity)}`, value: (q) => q.depth,
        share: (q) => q.depth / q.capacity },
      { name: "Puts/s", number: true, text: (q) => rate(q.puts_per_second), value: (q) => q.puts_per_second },
      { name: "Gets/s", number: true, text: (q) => rate(q.gets_per_second), value: (q) => q.gets_per_second },
      { name: "Waiting", wrap: true, text: (q) => waiting(q, people), tip: (q) => people.longList([...q.senders.waiting || [], ...q.receivers.waiting || []]),
        mark: (q) => q.senders.waiting?.length ? "warn" : "" },
      { name: "Ends", wide: true, text: ends, tip: (q) => `senders: ${people.longList(q.senders.pids) || "none"}; receivers: ${people.longList(q.receivers.pids) || "none"}` },
      { name: "State", wide: true, text: state, mark: (q) => q.senders.dead_pid || q.receivers.dead_pid ? "bad" : "" },
    ], { key: (q) => q.block, caption: "Queues", empty: "This program has no queue." });
    this.note = el("p", { class: "note", hidden: true });
    this.element = el("div", {}, this.table.element, this.note);
  }

  show(domain, people) {
    this.people(people);
    this.table.show(domain.queues || []);
    this.note.hidden = !domain.queues_left;
    text(this.note, `${plural(domain.queues_left || 0, "queue")} more, less busy, are not listed.`);
  }
}

function waiting(q, people) {
  const all = [];
  if (q.senders.waiting?.length) all.push(`${people.list(q.senders.waiting)} for room`);
  if (q.receivers.waiting?.length) all.push(`${people.list(q.receivers.waiting)} for a message`);
  return all.join("; ") || "–";
}

function ends(q) {
  return `${q.senders.pids?.length || 0} → ${q.receivers.pids?.length || 0}`;
}

function state(q) {
  if (q.senders.dead_pid) return `its last sender, ${q.senders.dead_pid}, died`;
  if (q.receivers.dead_pid) return `its last receiver, ${q.receivers.dead_pid}, died`;
  if (q.finished) return "finished";
  if (q.senders.gone) return "no sender";
  if (q.receivers.gone) return "no receiver";
  return q.latest ? "latest" : "open";
}
