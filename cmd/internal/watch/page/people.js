// Processes by their names, for panels that know only numbers.

export class People {
  constructor(domain) {
    this.names = new Map((domain.processes || []).map((p) => [p.pid, p.name]));
  }

  name(pid) {
    return this.names.get(pid) || `process ${pid}`;
  }

  // long has the number as well, so that two of one name can be told apart.
  long(pid) {
    return this.names.get(pid) ? `${this.names.get(pid)} (${pid})` : `process ${pid}`;
  }

  list(pids, none = "–") {
    return pids?.length ? pids.map((p) => this.name(p)).join(", ") : none;
  }

  longList(pids) {
    return pids?.length ? pids.map((p) => this.long(p)).join(", ") : null;
  }
}

// called is what a thing with names and a block is called.
export function called(thing) {
  return thing.names?.length ? thing.names.join(", ") : thing.block;
}
