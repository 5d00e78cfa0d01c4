// The page: which program is shown, its panels, the keys, and the stream.
import { el, text, attribute } from "./dom.js";
import { clock, percent } from "./format.js";
import { open } from "./stream.js";
import { Hosts } from "./hosts.js";
import { Overview } from "./overview.js";
import { Processes } from "./processes.js";
import { Memory } from "./memory.js";
import { Curves } from "./curves.js";
import { Loaders } from "./loaders.js";
import { Blocks } from "./blocks.js";
import { Queues } from "./queues.js";
import { Locks } from "./locks.js";
import { Waits, sentence } from "./waits.js";
import { Names } from "./names.js";
import { People } from "./people.js";

const $ = (id) => document.getElementById(id);

const panels = [
  { id: "overview", title: "Overview", view: new Overview(), plain: true },
  { id: "processes", title: "Processes", view: new Processes(), figure: (d) => (d.processes || []).length },
  { id: "memory", title: "Memory", view: new Memory() },
  { id: "curves", title: "Curves", view: new Curves(), given: (d) => memory.samples.some((s) => Object.keys(s.domains[d.address]?.values || {}).length) },
  { id: "loaders", title: "Loaders", view: new Loaders(), observed: true, given: (d) => (d.loaders || []).length > 0, figure: (d) => d.loaders.length },
  { id: "waits", title: "Waits", view: new Waits(), observed: true, figure: (d) => (d.waits || []).length },
  { id: "queues", title: "Queues", view: new Queues(), observed: true, figure: (d) => (d.queues || []).length + (d.queues_left || 0) },
  { id: "locks", title: "Locks", view: new Locks(), observed: true, figure: (d) => (d.locks || []).length + (d.locks_left || 0) },
  { id: "blocks", title: "Blocks", view: new Blocks(), observed: true, figure: (d) => d.blocks },
  { id: "names", title: "Names", view: new Names(), figure: (d) => (d.names || []).length },
];
const memory = panels.find((p) => p.id === "memory").view;

// known are the last readings of programs that run, or whose host does not answer, by their address.
const known = new Map();
const gone = new Map(); // those of programs that have ended
let moment = null, shown = null, chosen = null, paused = false;

for (const [i, p] of panels.entries()) {
  p.section = el("section", { id: p.id, class: "panel" + (p.plain ? " plain" : ""), tabindex: "-1", "aria-labelledby": `${p.id}-title` },
    el("h2", { id: `${p.id}-title`, class: p.plain ? "sr" : null }, p.title, p.count = el("small")), p.view.element);
  p.link = el("a", { href: `#${p.id}`, "data-key": (i + 1) % 10 }, p.title);
  $("nav").append(p.link);
  $("panels").append(p.section);
}

const hosts = new Hosts(label, (address) => {
  chosen = address;
  pinned = true;
  show();
  scrollTo({ top: 0 });
});
hosts.section = el("section", { id: "hosts", class: "panel", tabindex: "-1", "aria-labelledby": "hosts-title", hidden: true },
  el("h2", { id: "hosts-title" }, "Hosts", hosts.count = el("small")), hosts.element);
hosts.link = el("a", { href: "#hosts", "data-key": "h", hidden: true }, "Hosts");
$("nav").prepend(hosts.link);
$("panels").before(hosts.section);

// label is what a program is called: its first process.
function label(d) {
  const first = d.processes?.[0];
  return first ? `${first.name} (${first.pid})` : d.address;
}

function receive(event, data) {
  if (event === "history") return memory.reset(data);
  memory.add(data);
  if (data.error && moment) { // what was known of this machine stays
    data = { ...data, machine: moment.machine, domains: [...moment.domains.filter((d) => !d.host), ...data.domains] };
  }
  const run = new Set();
  for (const d of data.domains) {
    run.add(d.address);
    gone.delete(d.address);
    if (!d.error) known.set(d.address, d);
  }
  const quiet = new Set((data.hosts || []).filter((h) => h.state !== "live").map((h) => h.key));
  for (const [address, d] of known) {
    if (run.has(address) || quiet.has(d.host)) continue;
    known.delete(address); // its last words may have been an error, so the reading before is kept
    gone.set(address, { ...d, gone: data.at });
    const oldest = [...gone.keys()].find((a) => a !== chosen); // what is shown stays
    if (gone.size > 5) gone.delete(oldest);
  }
  moment = data;
  if (!paused) show();
}

// programs are those that run, those of hosts that do not answer, and those that have ended; of
// several hosts, those of one stand together.
function programs() {
  const run = new Set(moment.domains.map((d) => d.address)), at = new Map((moment.hosts || []).map((h, i) => [h.key, i]));
  const lost = [...known.values()].filter((d) => d.host && !run.has(d.address)).map((d) => ({ ...d, lost: hostOf(d) }));
  return [...moment.domains, ...lost, ...gone.values()].sort((a, b) => (at.get(a.host) ?? -1) - (at.get(b.host) ?? -1));
}

// hostOf is the joined host of a program.
function hostOf(d) {
  return d?.host ? (moment.hosts || []).find((h) => h.key === d.host) : null;
}

function show() {
  if (!moment) return;
  const all = programs();
  if (!all.some((d) => d.address === chosen)) chosen = all[0]?.address ?? null;
  // A program that was taken by default gives way to one that runs.
  if (gone.has(chosen) && moment.domains.length && !pinned) chosen = moment.domains[0].address;
  shown = all.find((d) => d.address === chosen) || null;
  const host = hostOf(shown);
  text($("machine"), `CPUs ${percent((host || moment).machine?.utilisation)}`);
  showPrograms(all);
  showHosts(all);
  $("empty").hidden = !!shown || !!moment.hosts;
  $("panels").hidden = !shown || !!shown.error;
  $("nav").hidden = $("panels").hidden && !moment.hosts;
  showNotice();
  document.title = shown ? `${label(shown)}${host ? ` on ${host.name}` : ""} – shoal watch` : "shoal watch";
  if (!shown || shown.error) {
    for (const p of panels) p.link.hidden = true;
    return;
  }
  $("panels").classList.toggle("over", !!shown.gone || !!shown.lost);
  const people = new People(shown);
  for (const p of panels) {
    p.section.hidden = p.link.hidden = p.observed && !shown.version // a program that is too old to tell
      || !!p.given && !p.given(shown);
    if (p.section.hidden) continue;
    if (p.view === memory) memory.show(shown.address, (pid) => people.names.get(pid) ? people.long(pid) : `ended (${pid})`);
    else if (p.id === "curves") p.view.show(shown.address, memory.samples);
    else p.view.show(shown, people);
    if (p.figure) text(p.count, p.figure(shown));
  }
  const alarm = (shown.deadlocks || []).length > 0;
  attribute(panels.find((p) => p.id === "waits").link, "data-alarm", alarm);
}

let pinned = false;

function showPrograms(all) {
  const select = $("program");
  select.hidden = all.length === 0;
  const group = (d) => (moment.hosts ? hostOf(d)?.name ?? moment.host : "");
  const shape = JSON.stringify(all.map((d) => [d.address, label(d), !!d.gone, !!d.lost, group(d)]));
  if (select.dataset.shape !== shape) {
    select.dataset.shape = shape;
    const groups = new Map();
    for (const d of all) {
      if (!groups.has(group(d))) groups.set(group(d), []);
      groups.get(group(d)).push(el("option", { value: d.address }, label(d) + (d.gone ? ", ended" : d.lost ? ", no answer" : "")));
    }
    select.replaceChildren(...[...groups].flatMap(([name, options]) => (moment.hosts ? el("optgroup", { label: name }, ...options) : options)));
  }
  select.value = chosen;
}

function showHosts(all) {
  hosts.section.hidden = hosts.link.hidden = !moment.hosts;
  if (!moment.hosts) return;
  hosts.show(moment, all);
  text(hosts.count, moment.hosts.length + 1);
  attribute(hosts.link, "data-alarm", moment.hosts.some((h) => ["silent", "failed"].includes(h.state)) || all.some((d) => (d.deadlocks || []).some((l) => !l.doubt)));
}

function showNotice() {
  const n = $("notice");
  let say = "", kind = "bad";
  if (stream === "lost") say = "The server refuses this page: shoal watch was started anew, or too many pages are open. Open the URL that it has printed last.";
  else if (stream === "ended") say = "shoal watch has ended. What you see is its last reading.";
  else if (stream === "late") say = "There is no news: a program does not answer, perhaps because it is stopped.";
  else if (moment?.error) say = `The last reading failed: ${moment.error}`;
  else if (shown?.lost) {
    say = `${shown.lost.name} has not answered since ${clock(shown.lost.since)}` + (shown.lost.error ? `: ${shown.lost.error}` : "")
      + ". What you see is its last reading.";
  } else if (shown?.error) say = `${shown.address} does not answer: ${shown.error}`;
  else if (shown?.gone) {
    say = `This program ended at ${clock(shown.gone)}. What you see is its last reading.`;
    kind = "";
  } else if (shown?.deadlocks?.length) {
    const certain = shown.deadlocks.filter((d) => !d.doubt);
    const first = certain[0] || shown.deadlocks[0];
    say = `${certain.length ? "Suspected deadlock" : "Perhaps a deadlock"}: ${sentence(first, new People(shown))}`
      + (first.doubt ? ` But ${first.doubt}.` : "")
      + (shown.deadlocks.length > 1 ? ` And ${shown.deadlocks.length - 1} more, in the panel Waits.` : "");
    kind = certain.length ? "bad" : "warn";
  }
  n.hidden = say === "";
  attribute(n, "data-kind", kind);
  text(n, say);
}

$("program").addEventListener("change", (e) => {
  chosen = e.target.value;
  pinned = true;
  show();
});

// The stream.
let stream = "connecting";
const words = { connecting: "connecting…", live: "live", late: "no news", lost: "refused", ended: "ended" };

function state(s) {
  stream = s;
  showStatus();
  if (s !== "live" && s !== "connecting") showNotice();
}

function showStatus() {
  const s = paused && stream === "live" ? "paused" : stream;
  attribute($("status"), "data-state", s);
  text($("status").lastChild, words[s] || s);
}

// Keys and buttons.
function pause() {
  paused = !paused;
  attribute($("pause"), "aria-pressed", String(paused));
  text($("pause"), paused ? "Go on" : "Pause");
  showStatus();
  if (!paused) show();
}

const themes = ["auto", "light", "dark"];

function theme(to) {
  try {
    if (to) localStorage.setItem("theme", to);
    else to = localStorage.getItem("theme");
  } catch { /* a browser without storage */ }
  to = themes.includes(to) ? to : "auto";
  attribute(document.documentElement, "data-theme", to);
  text($("theme"), to[0].toUpperCase() + to.slice(1));
  show();
}

const nextTheme = () => theme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]);

function step(by) {
  if (!moment) return;
  const all = programs();
  if (!all.length) return;
  const at = all.findIndex((d) => d.address === chosen);
  chosen = all[(at + by + all.length) % all.length].address;
  pinned = true;
  show();
}

function jump(p) {
  if (!p || p.section.hidden || p !== hosts && $("panels").hidden) return;
  p.section.focus({ preventScroll: true });
  p.section.scrollIntoView({ block: "start" });
}

const help = [
  ["1 … 9, 0", "go to a panel, 0 to the tenth"], ["h", "go to the hosts, if others are joined"],
  ["[ ]", "previous or next program"], ["p", "pause or resume"],
  ["t", "colours: as the system has them, light, dark"], ["?", "these keys"],
];
for (const [key, what] of help) $("help-keys").append(el("dt", {}, el("kbd", {}, key)), el("dd", {}, what));

const keys = { h: () => jump(hosts), p: pause, t: nextTheme, "[": () => step(-1), "]": () => step(1), "?": () => $("help").showModal() };
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || $("help").open || e.target.closest("select, input, textarea")) return;
  if (e.key >= "0" && e.key <= "9") jump(panels[(+e.key + 9) % 10]);
  else if (keys[e.key]) keys[e.key]();
  else return;
  e.preventDefault();
});
$("pause").addEventListener("click", pause);
$("theme").addEventListener("click", nextTheme);
$("keys").addEventListener("click", () => $("help").showModal());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show());

theme();
open(receive, state);
