// Numbers for people. The words are those of shoal top.

export function bytes(n) {
  if (!(Math.abs(n) >= 1024)) return `${Math.round(n || 0)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let u = -1;
  do {
    n /= 1024;
    u++;
  } while (Math.abs(n) >= 1024 && u < units.length - 1);
  return `${n.toFixed(n < 10 ? 2 : n < 100 ? 1 : 0)} ${units[u]}`;
}

export function count(n) {
  return Math.round(n || 0).toLocaleString("en-US");
}

// rate has a digit behind the point where there is little.
export function rate(n) {
  n = n || 0;
  return n !== 0 && n < 10 ? n.toFixed(1) : count(n);
}

export function percent(share) {
  return `${Math.round(100 * (share || 0))} %`;
}

export function seconds(s) {
  if (!(s >= 0)) return "";
  if (s < 1) return `${Math.round(1000 * s)} ms`;
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

export function plural(n, word) {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString("en-GB");
}
