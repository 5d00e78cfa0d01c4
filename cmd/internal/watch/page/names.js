// The names that are bound in a program.
import { el } from "./dom.js";

export class Names {
  constructor() {
    this.element = el("ul", { class: "chips" });
  }

  show(domain) {
    const names = domain.names || [];
    const shape = names.join("\n");
    if (shape === this.shape) return;
    this.shape = shape;
    this.element.replaceChildren(...names.map((n) =>
      el("li", { title: domain.bound?.[n]?.blocks?.length ? `blocks ${domain.bound[n].blocks.join(", ")}` : null }, el("code", {}, n))));
    if (!names.length) this.element.replaceChildren(el("li", { class: "none" }, "No name is bound."));
  }
}
