// Which front-end answers: each counts and remembers by itself, so pages say when it is another one than before.

import { h } from "./dom.js";
import { when } from "./parts.js";

// So long it is said that another one answers: until the windows of one that has just begun are full.
const SAID_MS = 60_000;

/** Notes which front-end answers. */
export class Answering {
  #now = null;
  #change = null;

  /** Notes an answer. now: its `front_end`.  atMs: when it came. */
  note(now, atMs) {
    const before = this.#now;
    this.#now = now;
    if (before !== null && keyOf(before) !== keyOf(now)) {
      this.#change = { before, atMs };
    }
  }

  /** Says for a while that another one answers. atMs: when the last answer came.  therefore: what follows of it. */
  said(atMs, therefore) {
    if (this.#change === null || atMs - this.#change.atMs > SAID_MS) {
      return false;
    }
    return h(
      "p",
      { class: "note", role: "status", "data-key": "another" },
      "Since ",
      when(this.#change.atMs),
      " another process answers than before: ",
      process(this.#now),
      ". It was ",
      process(this.#change.before),
      `. ${therefore}`,
    );
  }
}

/** Tells a process from others, and from the same one before it was started again. */
export function keyOf({ name, started_ms }) {
  return `${name} ${started_ms}`;
}

/** Names a process, and when it was started. */
export function process({ name, started_ms }) {
  return [h("b", null, name), ", started ", when(started_ms)];
}
