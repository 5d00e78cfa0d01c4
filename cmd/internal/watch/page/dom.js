// Elements, and tables whose rows stay the same elements while their numbers change: a selection,
// the focus and the place that a reader has scrolled to survive a reading.

// el makes an element. A property that begins with "on" is a listener; others are attributes.
export function el(tag, properties = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children);
  return e;
}

export function svg(tag, attributes = {}, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

// text sets a text only where it has changed.
export function text(e, s) {
  s = String(s);
  if (e.textContent !== s) e.textContent = s;
}

export function attribute(e, name, value) {
  if (value === null || value === undefined || value === false) e.removeAttribute(name);
  else if (e.getAttribute(name) !== String(value)) e.setAttribute(name, value);
}

// A bar shows a share of a whole. Its width is set by the style's own object, which the page's
// policy permits, and not by an attribute, which it does not.
export function bar(share) {
  const fill = el("i");
  fill.style.width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
  return el("span", { class: "bar-track", "aria-hidden": "true" }, fill);
}

// A Table has columns {name, title, text(row), share(row), tip(row), number, wide, wrap, first, mark(row),
// press(row)} and keeps a row for each key.
export class Table {
  constructor(columns, { key, caption, empty, class: name }) {
    this.columns = columns;
    this.key = key;
    this.rows = new Map();
    this.sort = null;
    this.body = el("tbody");
    this.heads = columns.map((c) => {
      const label = el("button", { type: "button", title: c.title || null, onclick: () => this.sortBy(c) }, c.name);
      return el("th", { scope: "col", class: cellClass(c) }, label);
    });
    this.none = el("p", { class: "none" }, empty);
    this.element = el("div", { class: "table" + (name ? " " + name : "") },
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
        el("table", {}, el("caption", { class: "sr" }, caption), el("thead", {}, el("tr", {}, ...this.heads)), this.body)),
      this.none);
  }

  // sortBy turns through falling, rising, and the order that the data has.
  sortBy(column) {
    if (this.sort?.column !== column) this.sort = { column, falling: true };
    else if (this.sort.falling) this.sort.falling = false;
    else this.sort = null;
    this.columns.forEach((c, i) => attribute(this.heads[i], "aria-sort",
      this.sort?.column === c ? (this.sort.falling ? "descending" : "ascending") : null));
    if (this.data) this.show(this.data);
  }

  show(data) {
    this.data = data;
    let rows = data;
    if (this.sort) {
      const { column, falling } = this.sort;
      const value = column.value || column.text;
      rows = [...data].sort((a, b) => {
        const x = value(a), y = value(b);
        const order = typeof x === "number" && typeof y === "number" ? x - y
          : String(x).localeCompare(String(y), undefined, { numeric: true });
        return falling ? -order : order;
      });
    }
    this.none.hidden = rows.length > 0;
    this.element.firstChild.hidden = rows.length === 0;
    const seen = this.given = new Map();
    let at = this.body.firstChild;
    for (const row of rows) {
      const key = String(this.key(row));
      if (seen.has(key)) continue;
      seen.set(key, row);
      let tr = this.rows.get(key);
      if (!tr) {
        tr = el("tr", {}, ...this.columns.map((c) => el(c.first ? "th" : "td", { class: cellClass(c), scope: c.first ? "row" : null },
          c.press ? el("button", { type: "button", class: "value", onclick: () => c.press(this.given.get(key)) }) : el("span", { class: "value" }))));
        this.rows.set(key, tr);
      }
      if (tr === at) at = at.nextSibling;
      else this.body.insertBefore(tr, at);
      this.fill(tr, row);
    }
    for (const [key, tr] of this.rows) {
      if (!seen.has(key)) {
        tr.remove();
        this.rows.delete(key);
      }
    }
  }

  fill(tr, row) {
    this.columns.forEach((c, i) => {
      const td = tr.children[i], value = td.firstChild;
      text(value, c.text(row));
      if (c.tip) attribute(value, "title", c.tip(row));
      if (c.mark) attribute(value, "data-mark", c.mark(row));
      if (c.indent) td.style.setProperty("--depth", c.indent(row));
      if (c.share) {
        const share = c.share(row);
        const track = td.querySelector(".bar-track");
        if (track) track.firstChild.style.width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
        else td.append(bar(share));
      }
    });
  }
}

function cellClass(c) {
  return [c.number && "number", c.wide && "wide", c.first && "first", c.share && "has-bar", c.wrap && "wrap"]
    .filter(Boolean).join(" ") || null;
}
