// What several pages show: ages, times, problems, tables, texts to copy.

import { mayReadSome, mayWith } from "./api.js";
import { h, seen, update } from "./dom.js";
import { duration, time } from "./format.js";

const PATIENCE_MS = 1_000;
// An answer that takes longer than this is not usual.
const LATE_MS = 5_000;
// A longer part of a name is broken anywhere.
const PART_MAX = 24;
const TASK = /(?<![\w./-])([A-Za-z]\w*\/(?:\*|[A-Za-z]\w*)\/\d+)(?![\w/-])/;
// What stands before the error of a copy (`… on node-1/0: `, `… on node-1/0 failed: `) or of a unit.
const ERROR = /; (?:the first|last): |\/\d+(?: failed)?: | ended: /;

/** The elements whose text changes by itself, once a second. */
const ticking = new Set();
setInterval(() => ticking.forEach((each) => each.draw()), 1_000);

class Ticking extends HTMLElement {
  static observedAttributes = ["at"];

  connectedCallback() {
    ticking.add(this);
    this.draw();
  }

  disconnectedCallback() {
    ticking.delete(this);
  }

  attributeChangedCallback() {
    if (this.isConnected) {
      this.draw();
    }
  }

  get ageMs() {
    return Date.now() - Number(this.getAttribute("at"));
  }
}

/** "as of 3 s ago". at: when the numbers beside it came, ms since 1970. */
class Age extends Ticking {
  draw() {
    update(this, [document.createTextNode(`as of ${duration(this.ageMs)} ago`)]);
  }
}

/** Progress of what takes longer than a second. at: when it began. what: what is waited for. */
class Wait extends Ticking {
  draw() {
    const what = this.getAttribute("what") ?? "waiting for an answer";
    const says = h("span", { class: this.ageMs > LATE_MS && "bad" }, `${what}: ${duration(this.ageMs)}`);
    const said = [h("progress", { "aria-label": what }), says];
    update(this, this.ageMs < PATIENCE_MS ? [] : said);
  }
}

/** Since when the server has not answered. at: that time. */
class Gone extends Ticking {
  draw() {
    const ago = `, ${duration(this.ageMs)} ago; what is shown is as it was`;
    update(this, [h("span", null, "no answer since ", when(Number(this.getAttribute("at"))), ago)]);
  }
}

/**
 * A text to copy, whole, with its button, which says that the text was copied for as long as that text stands there: the
 * page around it is drawn anew every few seconds. text: the text.
 */
class Copyable extends HTMLElement {
  static observedAttributes = ["text"];

  connectedCallback() {
    this.#draw();
  }

  attributeChangedCallback() {
    if (this.isConnected) {
      this.#draw();
    }
  }

  #draw() {
    const text = document.createTextNode(seen(this.getAttribute("text")));
    const button = h("button", { type: "button" }, "Copy");
    button.addEventListener("click", () => this.#copy(button));
    this.replaceChildren(h("pre", { tabindex: 0 }, h("code", null, text)), button);
  }

  /** Copies the text. Where a browser forbids that, it selects the text. */
  async #copy(button) {
    const code = this.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected: press Ctrl+C";
    }
  }
}

customElements.define("console-age", Age);
customElements.define("console-copyable", Copyable);
customElements.define("console-gone", Gone);
customElements.define("console-wait", Wait);

/** The age of what a poll knows, and progress if its next answer takes long. */
export function standing(poll) {
  return h(
    "p",
    { class: "standing" },
    poll.atMs !== null && poll.data !== undefined && h("console-age", { at: poll.atMs }),
    waiting(poll),
  );
}

/** Progress of a poll's request that takes long. what: what is waited for. */
export function waiting(poll, what) {
  return poll.sinceMs !== null && h("console-wait", { at: poll.sinceMs, what });
}

/** What the server refused, in its words. what: what is not shown therefore. */
export function problem(error, what) {
  const isScope = error.status === 403 && error.detail.includes("scope");
  return h(
    "div",
    { class: error.status === 409 ? "note" : "problem", role: "alert", "data-key": `problem of ${what}` },
    error.status !== 409 && h("strong", null, isScope ? `This token may not see ${what}` : error.title),
    h("p", null, withCode(sentence(error.detail))),
    error.errors.length > 1 && h("ul", null, error.errors.map(wrong)),
  );
}

/** A text whose parts between backticks are code. */
function withCode(text) {
  const parts = text.split(/`([^`\n]+)`/);
  return parts.map((part, place) => (place % 2 ? h("code", null, part) : part));
}

/** Names the scopes of a stream that a token lacks; false if it lacks none. kinds: of those that are needed. */
export function lacking(who, kinds, stream) {
  const lacks = kinds.filter((kind) => !mayWith(who, kind, stream));
  const names = lacks.map((kind, place) => [place > 0 && " and ", h("code", null, `${kind}:${stream}`)]);
  return (
    lacks.length > 0 &&
    h(
      "div",
      { class: "problem", role: "alert", "data-key": `scopes of ${stream}` },
      h("p", null, "This token lacks ", names, ", which is needed."),
    )
  );
}

function wrong({ loc, msg }) {
  return h("li", null, h("code", null, loc.join(".")), " ", msg);
}

/** What there is to show of a poll: the problem, if there is one, and what `show` makes of the data. */
export function shown(poll, what, show) {
  return [
    poll.problem !== null && problem(poll.problem, what),
    poll.data === undefined ? poll.problem === null && h("p", { class: "quiet" }, "…") : show(poll.data),
  ]
    .flat()
    .filter(Boolean);
}

/** A time in the viewer's zone, UTC beside. */
export function when(ms) {
  const found = time(ms);
  if (found === null) {
    return h("span", null, String(ms));
  }
  const isUtc = found.utc === `${found.local} UTC`;
  return h("time", { datetime: found.iso }, isUtc ? found.utc : [found.local, " ", h("small", null, found.utc)]);
}

/**
 * A table that scrolls by itself where it is too wide.
 *
 * columns: `[title, class]`; the class "number" aligns to the right.  rows: `[key, cells]`; the first cell is the
 * head of its row.  kind: "stacked" where the cells of a row stand one below the other in a narrow window.
 */
export function table(label, columns, rows, kind) {
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": label, tabindex: 0, "data-key": label },
    h(
      "table",
      { class: kind },
      h(
        "thead",
        null,
        h("tr", null, columns.map(([title, kind]) => h("th", { scope: "col", class: kind }, title))),
      ),
      h(
        "tbody",
        null,
        rows.map(([key, cells]) =>
          h(
            "tr",
            { "data-key": key },
            cells.map((cell, place) => {
              const [name, attributes] = place ? ["td", {}] : ["th", { scope: "row" }];
              return h(name, { ...attributes, class: columns[place][1] }, cell);
            }),
          ),
        ),
      ),
    ),
  );
}

/** What has less weight than what stands around it. */
export function quiet(text) {
  return h("span", { class: "quiet" }, text);
}

/** A name as code. It is broken behind `_` and `.`. */
export function named(name) {
  const parts = name.split(/(?<=[_.])/);
  const isLong = parts.some(({ length }) => length > PART_MAX);
  const said = parts.map((part, place) => [place > 0 && h("wbr"), part]);
  return h("code", { class: isLong ? "named long-part" : "named" }, said);
}

/** An input with its label, on one line. */
export function labelled(text, input) {
  return h("span", { class: "labelled" }, h("label", { for: input.id }, text), input);
}

/** How far something has come, as a bar with words beside it. */
export function bar(value, max, text) {
  return h("span", { class: "progress" }, h("progress", { value, max, "aria-label": text }), text);
}

/** Figures, each under its name. said: `[name, value, kind]`; the kinds "bad" and "off" colour a figure. */
export function figures(said) {
  return h(
    "dl",
    { class: "figures" },
    said.map(([name, value, kind]) => h("div", { class: kind }, h("dt", null, name), h("dd", null, value))),
  );
}

/** What stands in place of streams where a token may read none. */
export function nothingToRead() {
  return h(
    "div",
    { class: "problem", role: "alert", "data-key": "nothing to read" },
    h("strong", null, "This token may not see any stream"),
    h("p", null, "It lacks the scope ", h("code", null, "read:STREAM"), "."),
  );
}

/** What stands in place of streams where a token sees none. */
export function noStream(who) {
  const overview = h("a", { href: "#/overview" }, "overview");
  const none = () => h("p", { class: "note" }, "There is no stream yet. The ", overview, " has three ways to begin.");
  return mayReadSome(who) ? none() : nothingToRead();
}

/** Streams to choose from. link: makes the link of one by its name.  none: what stands there if there is none. */
export function choice(names, link, none) {
  return names.length
    ? h("ul", { class: "choice" }, names.map((name) => h("li", { "data-key": name }, link(name))))
    : none;
}

/** Text to copy, whole, with its button. */
export function copyable(text) {
  return h("console-copyable", { class: "copyable", text });
}

/** A text about a cluster as a sentence, in which the names of tasks are links to them. */
export function told(text) {
  return linked(sentence(text));
}

/** A text in which the names of tasks are links to them. The error at its end may name paths, which look alike. */
export function linked(text) {
  const error = text.match(ERROR);
  const end = error === null ? text.length : error.index + error[0].length;
  const parts = text.slice(0, end).split(TASK);
  const said = parts.map((part, place) =>
    place % 2 ? h("a", { href: `#/cluster/${encodeURIComponent(part)}` }, part) : part,
  );
  return [...said, text.slice(end)];
}

/** A text of the server as a sentence: it begins with a capital and ends with a full stop. */
export function sentence(text) {
  const said = text.trim();
  const begun = /^[a-z]+[ ,]/.test(said) ? said[0].toUpperCase() + said.slice(1) : said;
  return /[.!?:…]$/.test(begun) ? begun : begun + ".";
}
