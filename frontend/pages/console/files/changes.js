// Who changed which stream or metric, the newest first.

import { ask, download } from "./api.js";
import { h } from "./dom.js";
import { number } from "./format.js";
import { Page } from "./page.js";
import { problem, quiet, shown, table, when } from "./parts.js";

const EVERY_MS = 10_000;
const LIMIT = 100;
const KEPT_MAX = 5_000;
const KINDS = {
  stream: "stream",
  drop_stream: "stream dropped",
  add: "metric added",
  derive: "derived metric added",
  drop: "metric dropped",
  history: "history",
  begin_deepening: "deepening begun",
  deepen: "deepened",
};
const COLUMNS = [
  ...[["Place", "number"], ["When", "short"], ["Who", "name"]],
  ...[["From", "name"], ["Stream, metric", "name"], ["Change", "sql"]],
];

class Changes extends Page {
  #older = [];
  #isWhole = false;
  #askedMs = null;
  #refused = null;
  #bundle = { askedMs: null, refused: null };

  begin() {
    this.changes = this.poll(`/v1/log?limit=${LIMIT}`, EVERY_MS);
    this.addEventListener("click", (event) => {
      if (event.target.closest("[data-action=older]")) {
        this.#askOlder();
      } else if (event.target.closest("[data-action=bundle]")) {
        this.#askForBundle();
      }
    });
  }

  content() {
    return [
      this.head("Changes", this.changes),
      h("p", { class: "lead" }, "Who changed which stream or metric, the newest first."),
      ...this.#support(),
      ...shown(this.changes, "changes", ({ changes }) => this.#list(changes)),
    ];
  }

  #support() {
    const { askedMs, refused } = this.#bundle;
    const says =
      "Versions, settings without secrets, status, cluster, figures and these changes in one file, " +
      "for somebody who looks for a fault. No event is in it.";
    return [
      h(
        "p",
        { class: "more", "data-key": "support" },
        h("button", { type: "button", "data-action": "bundle", disabled: askedMs !== null }, "Support bundle"),
        askedMs === null && quiet(says),
        askedMs !== null && h("console-wait", { at: askedMs, what: "making the bundle" }),
      ),
      refused && problem(refused, "the support bundle"),
    ];
  }

  async #askForBundle() {
    if (this.#bundle.askedMs !== null) {
      return;
    }
    this.#bundle = { askedMs: Date.now(), refused: null };
    this.draw();
    try {
      await download("/v1/support");
      this.#bundle.askedMs = null;
    } catch (error) {
      this.#bundle = { askedMs: null, refused: error.status ? error : null };
    }
    this.draw();
  }

  #list(newest) {
    const last = newest.at(-1)?.place ?? 0;
    if (this.#older.length && this.#older[0].place < last) {
      // More than one answer holds were made since then: what lies between is asked for again.
      this.#older = [];
      this.#isWhole = false;
    }
    const all = [...newest, ...this.#older.filter((each) => each.place < last)];
    if (!all.length) {
      return [h("p", { class: "note" }, "Nothing has been changed yet.")];
    }
    const isWhole = this.#isWhole || newest.length < LIMIT;
    return [
      table("Changes", COLUMNS, all.map((each) => [each.place, row(each)])),
      this.#refused && problem(this.#refused, "older changes"),
      h(
        "p",
        { class: "more" },
        isWhole && "These are all.",
        !isWhole && this.#more(all),
        this.#askedMs !== null && h("console-wait", { at: this.#askedMs }),
      ),
    ];
  }

  #more(all) {
    if (all.length >= KEPT_MAX) {
      return `Older ones: GET /v1/log?before=${all.at(-1).place}.`;
    }
    const isAsked = this.#askedMs !== null;
    return h("button", { type: "button", "data-action": "older", disabled: isAsked }, "Older changes");
  }

  async #askOlder() {
    const newest = this.changes.data?.changes ?? [];
    const before = (this.#older.at(-1) ?? newest.at(-1))?.place;
    if (this.#askedMs !== null || before === undefined) {
      return;
    }
    this.#askedMs = Date.now();
    this.#refused = null;
    this.draw();
    try {
      const { changes } = await ask(`/v1/log?limit=${LIMIT}&before=${before}`);
      // Those that are the newest now stay as others are made.
      this.#older = [...newest, ...this.#older, ...changes].filter(once());
      this.#isWhole = changes.length < LIMIT;
    } catch (error) {
      this.#refused = error.status ? error : null;
    }
    this.#askedMs = null;
    this.draw();
  }
}

function row({ place, at_ms, who, from, kind, stream, name, what }) {
  return [
    number(place),
    at_ms === null ? quiet("not kept") : when(at_ms),
    who ?? quiet("no token"),
    from === null ? quiet("a command") : h("code", null, from),
    [h("code", null, stream), name !== null && h("div", null, h("code", null, name))],
    [h("div", null, KINDS[kind] ?? kind), h("code", null, what)],
  ];
}

function once() {
  const seen = new Set();
  return ({ place }) => !seen.has(place) && seen.add(place);
}

customElements.define("page-changes", Changes);
