// The derived metrics of one reply as a tree: each node has its own value in that reply.

import { h } from "./dom.js";
import { named, quiet } from "./parts.js";
import { special } from "./value.js";

const NODES_MAX = 500;

/**
 * The tree of an event's derived metrics. derived: by name, the expression of each and the names that it reads.
 *
 * Those that no other one reads come first, and of them what is true. What is read twice is shown in full once.
 */
export function derivedTree(event, derived, masked) {
  const there = Object.keys(derived).filter((name) => Object.hasOwn(event.reply.metrics, name));
  const read = new Set(there.flatMap((name) => derived[name].reads));
  const tree = new Tree(event, derived, masked);
  const roots = there.filter((name) => !read.has(name));
  const isFalse = (name) => event.reply.metrics[name] !== true;
  const first = (roots.length ? roots : there).toSorted((one, other) => isFalse(one) - isFalse(other));
  const shown = first.map((name) => tree.node(name)).filter(Boolean);
  return [
    h("ul", { class: "derived" }, shown),
    tree.isCut && h("p", { class: "quiet" }, `The first ${NODES_MAX} nodes are shown.`),
  ];
}

class Tree {
  isCut = false;
  #nodes = 0;
  #seen = new Set();

  constructor(event, derived, masked) {
    Object.assign(this, { event, derived, masked });
  }

  node(name) {
    this.#nodes += 1;
    if (this.#nodes > NODES_MAX) {
      this.isCut = true;
      return null;
    }
    const known = Object.hasOwn(this.derived, name) ? this.derived[name] : null;
    const isSeen = this.#seen.has(name);
    this.#seen.add(name);
    return h(
      "li",
      { class: this.event.reply.metrics[name] === true && "holds" },
      h("span", null, named(name), " = ", this.#value(name)),
      known && h("small", null, h("code", null, known.expression), isSeen && " (as above)"),
      known && !isSeen && h("ul", null, known.reads.map((each) => this.node(each))),
    );
  }

  #value(name) {
    const { reply, fields } = this.event;
    if (this.masked.metrics.includes(name) || this.masked.fields.includes(name)) {
      return quiet("masked");
    }
    if (reply.warming?.includes(name)) {
      return h("span", { class: "state off" }, "warming");
    }
    const found = [reply.metrics, fields ?? {}].find((each) => Object.hasOwn(each, name));
    if (found === undefined) {
      return quiet("not in this reply");
    }
    const isTime = this.event.source.times.includes(name);
    return special(found[name], isTime) ?? h("b", null, String(found[name]));
  }
}
