// A form for a query: what it would add, its error at its place, its TOML, and an order to register it.

import { DisconnectedError, ask, mayWith } from "./api.js";
import { h, seen, update } from "./dom.js";
import { counted, number } from "./format.js";
import { copyable, problem, quiet, sentence, table } from "./parts.js";
import { drawn, leaves } from "./plan.js";
import { metricsToml, streamToml } from "./toml.js";

const PATIENCE_MS = 300;
const NEW = [
  ...[["Metric", "name"], ["Computed as", "sql"], ["Type", "name"], ["Home", "name"]],
  ...[["Window", "name"], ["What it is", "long"]],
];

/** The form. who: the answer of /v1/whoami.  name: of the stream.  registered: is called once metrics are new. */
export class Query extends HTMLElement {
  #known = {};
  #timer = null;
  #ends = null;
  #askedMs = null;
  #sentMs = null;
  // What the server said of the text: {sql, plan} or {sql, error}. Then, of an order to register it: {names} or {error}.
  #said = null;
  #done = null;

  constructor() {
    super();
    this.addEventListener("input", () => this.#typed());
    this.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#register();
    });
    this.addEventListener("click", (event) => {
      if (event.target.closest("[data-action=place]")) {
        this.#goToError();
      }
    });
  }

  connectedCallback() {
    this.#draw();
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    this.#ends?.abort();
  }

  /** Takes what is registered now. Any of it may be undefined: not known yet. */
  know(known) {
    const keys = Object.keys(known);
    if (keys.some((key) => known[key] !== this.#known[key])) {
      this.#known = known;
      this.#draw();
    }
  }

  get #path() {
    return `/v1/streams/${encodeURIComponent(this.name)}`;
  }

  get #area() {
    return this.querySelector("textarea");
  }

  // --- what happens ---------------------------------------------------------------------------------

  #typed() {
    clearTimeout(this.#timer);
    this.#ends?.abort();
    this.#askedMs = null;
    this.#done = null;
    const sql = this.#area.value;
    if (sql.trim()) {
      this.#timer = setTimeout(() => this.#explain(sql), PATIENCE_MS);
    } else {
      this.#said = null;
    }
    this.#draw();
  }

  async #explain(sql) {
    this.#ends = new AbortController();
    const { signal } = this.#ends;
    this.#askedMs = Date.now();
    this.#draw();
    try {
      const { streams } = await ask(`${this.#path}/explain`, { method: "POST", body: { sql }, signal });
      this.#said = { sql, plan: streams[0] };
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      this.#said = { sql, error: asProblem(error) };
    }
    this.#askedMs = null;
    this.#draw();
  }

  async #register() {
    const { sql, plan } = this.#said ?? {};
    if (this.#sentMs !== null || plan === undefined || sql !== this.#area.value || !this.#mayRegister) {
      return;
    }
    this.#sentMs = Date.now();
    this.#done = null;
    this.#draw();
    try {
      const { metrics } = await ask(`${this.#path}/metrics`, { method: "POST", body: { sql } });
      this.#done = { names: metrics.map(({ name }) => name) };
      if (this.#area.value === sql) {
        this.#area.value = "";
        this.#said = null;
      }
    } catch (error) {
      this.#done = { error: asProblem(error, "They may have been registered: look at the list") };
    }
    this.#sentMs = null;
    this.#draw();
    this.registered();
  }

  #goToError() {
    const { sql, error } = this.#said ?? {};
    const place = error && placeOf(error, sql);
    if (place) {
      this.#area.focus();
      this.#area.setSelectionRange(place.from, place.to);
    }
  }

  get #mayRegister() {
    return mayWith(this.who, "define", this.name);
  }

  // --- what is shown --------------------------------------------------------------------------------

  #draw() {
    const { sql, plan, error } = this.#said ?? {};
    const text = this.#area?.value ?? "";
    const isCurrent = sql === text;
    const place = error && isCurrent ? placeOf(error, sql) : null;
    update(this, [
      h(
        "form",
        { class: "query", "data-key": "form" },
        h("label", { for: "query" }, "A query, or a DERIVE, over this stream"),
        h("div", { class: "typed", "data-key": "typed" }, marked(text, place), area(this.name, error && isCurrent)),
        h(
          "div",
          { id: "said", role: "status", "data-key": "said" },
          error && isCurrent && errorText(error, place),
          this.#askedMs !== null && h("console-wait", { at: this.#askedMs, what: "asking the server" }),
        ),
        plan !== undefined && isCurrent && this.#buttons(plan),
      ),
      h("div", { role: "status", "data-key": "done" }, this.#outcome()),
      plan !== undefined && h(
          "div",
          { "data-key": "plan" },
          !isCurrent && h("p", { class: "quiet" }, "Of what was typed before:"),
          this.#explained(plan, sql),
        ),
    ]);
  }

  #buttons(plan) {
    if (!this.#mayRegister) {
      const scope = h("code", null, `define:${this.name}`);
      return h("p", { class: "note" }, "Registering needs the scope ", scope, ", which this token lacks.");
    }
    const found = changed(plan, this.#known.plan);
    const label = found?.length ? `Register ${counted(found.length, "metric")}` : "Register";
    // The server would refuse all of them.
    const isVain = found !== null && !(found.length && found.every(({ isNew }) => isNew));
    return h(
      "div",
      { class: "buttons", "data-key": "buttons" },
      this.#sentMs !== null && h("console-wait", { at: this.#sentMs, what: "registering" }),
      h("button", { type: "submit", class: "main", disabled: this.#sentMs !== null || isVain }, label),
    );
  }

  #outcome() {
    const { names, error } = this.#done ?? {};
    return [
      names && h("p", { class: "note" }, "Registered: ", listed(names), ". The list above says when they answer."),
      error && problem(error, "this order"),
    ];
  }

  #explained(plan, sql) {
    const found = changed(plan, this.#known.plan);
    if (found === null) {
      return h("p", { class: "quiet" }, "What of it is new is not known: the plan of what is registered is not there.");
    }
    const fresh = new Set(found.map(({ name }) => name));
    const homes = new Set(found.map(({ home }) => home));
    return [
      fresh.size
        ? table("What it adds", NEW, found.map((each) => [each.name, newRow(each)]))
        : h("p", { class: "note" }, "All of it is registered already."),
      plan.partitioners.filter(({ partitioner }) => homes.has(partitioner)).map((each) => this.#cost(each)),
      h(
        "details",
        { "data-key": "picture" },
        h("summary", null, "The plan with it"),
        drawn(plan, beside(plan, fresh), "Plan with it", fresh),
      ),
      this.#toml(plan, sql, found),
    ];
  }

  /** What the tasks of a partitioner have to do in addition. */
  #cost(after) {
    const before = this.#known.plan.partitioners.find(({ partitioner }) => partitioner === after.partitioner);
    const size = (plan) => plan.rows.reduce((all, each) => all + each.size_bytes, 0);
    const grown = [
      [counted(after.windows.length, "window"), after.windows.length - before.windows.length],
      [`${counted(after.cursors, "cursor")} that read events`, after.cursors - before.cursors],
      [counted(after.cells, "cell"), after.cells - before.cells],
      [`${number(size(after))} bytes in the rows of an entity`, size(after) - size(before)],
    ];
    const parts = grown.map(([text, more]) => `${text} (${more < 0 ? "−" : "+"}${number(Math.abs(more))})`);
    return h("p", { class: "cost" }, "By ", h("code", null, after.partitioner), `: ${parts.join(", ")}`);
  }

  #toml(plan, sql, found) {
    const { stream, metrics } = this.#known;
    const block = metricsToml([sql]);
    const whole = stream && metrics && wholeFile(stream, metrics, plan, sql, found);
    return [
      h("h3", null, "For a definitions file"),
      copyable(block),
      whole &&
        h(
          "details",
          { "data-key": "whole" },
          h("summary", null, "As a file of its own, with the stream as it is registered"),
          copyable(whole),
        ),
    ];
  }
}

function area(name, isWrong) {
  return h("textarea", {
    ...{ id: "query", rows: 3, spellcheck: "false", autocapitalize: "off", autocomplete: "off" },
    ...{ "aria-describedby": "said", "aria-invalid": isWrong ? "true" : null },
    placeholder: `SELECT count(*) AS n_1h FROM ${name} OVER SLIDING 1 HOUR`,
  });
}

/** The text again, behind what is typed, with a mark at the place of the error. It also gives the field its height. */
function marked(text, place) {
  const [from, to] = place === null ? [text.length, text.length] : [place.from, place.to];
  const parts = [text.slice(0, from), text.slice(from, to), text.slice(to)].map(seen);
  return h(
    "div",
    { class: "marked", "aria-hidden": "true" },
    parts[0],
    place !== null && h("mark", null, parts[1] || " "),
    `${parts[2]}\n`,
  );
}

function errorText(error, place) {
  return h(
    "p",
    { class: "refused" },
    sentence(error.errors[0]?.msg ?? error.detail),
    place && [" ", h("button", { type: "button", "data-action": "place" }, "Show the place")],
  );
}

/** Where in a query an error is, by its text: `{from, to}`. Null if it names no place. */
function placeOf(error, sql) {
  const found = /line (\d+), column (\d+): /.exec(error.errors[0]?.msg ?? error.detail);
  if (found === null) {
    return null;
  }
  const [line, column] = [Number(found[1]), Number(found[2])];
  const before = sql.split("\n").slice(0, line - 1);
  const begin = before.reduce((length, each) => length + each.length + 1, 0);
  // The server counts characters; one beyond U+FFFF has two places here.
  const characters = [...(sql.split("\n")[line - 1] ?? "")];
  const from = begin + characters.slice(0, column - 1).join("").length;
  const word = /^(\w+|[^])/u.exec(characters.slice(column - 1).join(""))?.[0] ?? "";
  return { from, to: from + word.length };
}

function asProblem(error, more = "Type on, and it is asked again") {
  if (error instanceof DisconnectedError) {
    return { status: 0, title: "No answer", detail: `the server does not answer. ${more}`, errors: [] };
  }
  return error;
}

/**
 * The metrics of an explanation that the plan of what is registered lacks (`isNew`), or has otherwise. Null if that plan
 * is not known.
 */
function changed(after, before) {
  if (before === undefined) {
    return null;
  }
  const known = new Map(all(before).map((each) => [each.name, text(each)]));
  const found = all(after).filter((each) => known.get(each.name) !== text(each));
  return found.map((each) => ({ ...each, isNew: !known.has(each.name) }));
}

/** All metrics of a plan; derived ones have no home. */
function all(plan) {
  const derived = plan.derived.map(({ name, expression, type, reads }) => ({ name, aggregate: expression, type, reads }));
  return [...leaves(plan), ...derived];
}

function text({ aggregate, type, home, window, predicate, fields }) {
  return JSON.stringify([aggregate, type, home, window, predicate, fields]);
}

/** Which metrics stand beside new ones: those of the same window, filter and grouping. */
function beside(plan, fresh) {
  const way = ({ home, window, predicate, fields }) => JSON.stringify([home, window, predicate, fields]);
  const ways = new Set(leaves(plan).filter(({ name }) => fresh.has(name)).map(way));
  const near = new Set(leaves(plan).filter((each) => ways.has(way(each))).map(({ name }) => name));
  return (name) => near.has(name) || fresh.has(name);
}

function newRow({ name, aggregate, type, home, window, predicate, fields, isNew }) {
  const parts = [predicate && `WHERE ${predicate}`, fields?.length > 0 && `GROUP BY ${fields.join(", ")}`];
  const computed = [aggregate, ...parts.filter(Boolean)].join(" ");
  return [
    h("code", null, name),
    h("code", null, computed),
    type,
    home === undefined ? quiet("derived") : h("code", null, home),
    window === undefined ? "" : h("code", null, window),
    isNew
      ? h("span", { class: "state good" }, "new")
      : h(
          "span",
          { class: "state bad" },
          "registered otherwise under this name: choose another, or drop that metric first, by a DELETE of it",
        ),
  ];
}

function listed(names) {
  return names.map((each, place) => [place > 0 && ", ", h("code", null, each)]);
}

/** A file that defines the query's metrics by itself: with the stream, and the metrics that a DERIVE reads. */
function wholeFile(stream, metrics, plan, sql, found) {
  if (stream.input?.schema !== undefined) {
    // In a file it stands as the name of another file, which is not known here.
    return null;
  }
  const own = new Set(found.map(({ name }) => name));
  const derived = new Map(plan.derived.map((each) => [each.name, each.reads]));
  const needed = new Set();
  const add = (name) => {
    const isNew = !needed.has(name);
    needed.add(name);
    if (isNew) {
      (derived.get(name) ?? []).forEach((each) => metrics.some((metric) => metric.name === each) && add(each));
    }
  };
  own.forEach(add);
  const read = metrics.filter(({ name }) => needed.has(name) && !own.has(name)).map((each) => each.sql);
  return `${streamToml(stream)}\n${metricsToml([...read, sql])}`;
}

customElements.define("console-query", Query);
