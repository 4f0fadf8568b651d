// The values of a key now, and how to ask for them elsewhere. The question stands in the address.

import { h } from "./dom.js";
import { Digits, parsed, written } from "./exact.js";
import { liveOf } from "./filter.js";
import { number, share } from "./format.js";
import { Page } from "./page.js";
import { choice, copyable, labelled, lacking, named, noStream, quiet, shown, standing, table, when } from "./parts.js";
import { Poll } from "./poll.js";
import { addressOf, curlOf, lookUp, pythonOf, questionOf, valueOf } from "./question.js";
import { taken } from "./taken.js";
import { isUnknown, untold } from "./untold.js";
import { conditions, special } from "./value.js";

const EVERY_MS = 5_000;
const ROWS_MAX = 500;
const UNKNOWN =
  "Nothing is known of this key: the metrics that group by it are all empty, null or 0. It had no event in their " +
  "windows, or it is written differently.";
const NOT_BY_THESE = "These metrics are all empty, null or 0. Others may know more of this key: ask without naming metrics.";
// Decimals come as text, which has all their digits.
const DECIMAL = /^-?\d+\.\d+$/;
// A longer text scrolls by itself.
const LONG = 200;
const NO_QUESTION = "The address has no question that can be read. Type one.";
const NEWEST = / FROM \S+ GROUP BY [^()]+ OVER INFINITE(?: EXCLUDE CURRENT)?$/;
const VALUES = [["Metric", "name"], ["Value", "value"], ["Note"], ["SQL", "sql"]];

class Lookup extends Page {
  #question = null;
  #isUnread = false;
  #values = null;
  #typed = new Set();

  begin() {
    const [name, question] = this.rest;
    if (name === undefined) {
      this.streams = this.poll("/v1/streams", EVERY_MS);
      return;
    }
    this.lacks = lacking(this.who, ["read", "inspect"], name);
    if (this.lacks) {
      return;
    }
    const place = `/v1/streams/${encodeURIComponent(name)}`;
    this.stream = this.poll(place, EVERY_MS);
    this.metrics = this.poll(`${place}/metrics`, EVERY_MS);
    // It says what is masked and which values are times, and has no event after such a number.
    this.masks = this.poll(`${place}/samples?after=${Number.MAX_SAFE_INTEGER}`, EVERY_MS);
    this.#read(question);
    this.addEventListener("input", (event) => this.#wasTyped(event.target));
    this.addEventListener("keydown", (event) => {
      // A text may have several lines; Enter asks nevertheless, and Shift+Enter begins a line.
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.matches("textarea")) {
        event.preventDefault();
        event.target.form.requestSubmit();
      }
    });
    this.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#values?.stop();
  }

  #read(text) {
    try {
      this.#question = text === undefined ? null : questionOf(text);
    } catch {
      this.#isUnread = true;
    }
    if (this.#question?.keys.length) {
      this.#ask();
    }
  }

  #ask() {
    this.#values?.stop();
    const path = `/v1/streams/${encodeURIComponent(this.rest[0])}/values`;
    const asked = { method: "POST", text: written(this.#question), read: parsed };
    this.#values = new Poll(path, EVERY_MS, () => this.redraw(), asked);
    this.#values.start();
  }

  #wasTyped(input) {
    const { field } = input.dataset;
    if (field !== undefined) {
      this.#typed.add(field);
      this.querySelector(`#is-${field}`).value = "is";
    }
    this.draw();
  }

  #submit() {
    const key = {};
    for (const [field, type] of this.#fields()) {
      const kind = this.querySelector(`#is-${field}`).value;
      if (kind !== "") {
        key[field] = this.#given(field, type, kind);
      }
    }
    const names = this.querySelector("#metrics").value.split(/[\s,]+/).filter(Boolean);
    this.#question = names.length ? { keys: [key], metrics: names } : { keys: [key] };
    this.#isUnread = false;
    this.#typed.clear();
    history.pushState(null, "", addressOf(this.rest[0], this.#question));
    this.#ask();
    this.draw();
  }

  /** The value of a field of the key. What nobody has typed over stays exactly as the address has it. */
  #given(field, type, kind) {
    if (kind !== "is") {
      return { true: true, false: false, null: null }[kind];
    }
    const known = this.#question?.keys[0]?.[field];
    if (known !== undefined && known !== null && !this.#typed.has(field)) {
      return known;
    }
    return valueOf(this.querySelector(`#key-${field}`).value, type);
  }

  /** The fields of keys, each with its type, in the order of the stream. */
  #fields() {
    const named = new Set(this.metrics.data.metrics.flatMap(({ key }) => key ?? []));
    const fields = Object.entries(this.stream.data.fields);
    return fields.filter(([name]) => named.has(name)).map(([name, field]) => [name, field.type ?? field]);
  }

  // --- what is shown

  content() {
    return this.streams ? this.#choice() : this.#one();
  }

  #choice() {
    return [
      this.head("Look up", this.streams),
      h("p", { class: "lead" }, "What the metrics of a card, a merchant, or whatever a stream groups by are now."),
      ...shown(this.streams, "streams", ({ streams }) => {
        const names = streams.map(({ name }) => name);
        return choice(names, (name) => lookUp(name), noStream(this.who));
      }),
    ];
  }

  #one() {
    const [name] = this.rest;
    const place = `#/streams/${encodeURIComponent(name)}`;
    const head = [
      h("p", { class: "back" }, h("a", { href: place }, "The stream ", name)),
      h("header", { class: "head" }, h("h1", { tabindex: -1 }, "Look up a key of ", name)),
    ];
    if (this.lacks) {
      return [...head, this.lacks];
    }
    const unknown = [this.stream, this.metrics, this.masks].find((each) => each.data === undefined);
    if (unknown !== undefined) {
      return [...head, ...shown(unknown, `the stream ${name}`)];
    }
    const unread = this.#isUnread && h("p", { class: "problem", role: "alert" }, NO_QUESTION);
    return [...head, unread, this.#form(), this.#answer()];
  }

  #form() {
    if (!this.metrics.data.metrics.length) {
      return h("p", { class: "note" }, "The stream has no metric yet.");
    }
    return h(
      "form",
      { class: "lookup", "data-key": "form" },
      this.#fields().map(([name, type]) => this.#field(name, type)),
      h(
        "div",
        { class: "field", "data-key": "metrics" },
        h("label", { for: "metrics" }, "Only these metrics"),
        typing(
          { id: "metrics", ...this.#marks("metrics"), placeholder: "all that the key determines" },
          false,
          this.#question?.metrics?.join(", ") ?? "",
        ),
        this.#wrong("metrics"),
      ),
      h("div", { class: "field" }, h("button", { type: "submit", class: "main" }, "Look up"), this.#wrong("key")),
    );
  }

  /** A field of the key: whether the key has it, and its value. */
  #field(name, type) {
    const value = this.#question?.keys[0]?.[name];
    const kinds = type === "boolean" ? ["true", "false"] : ["is"];
    const isWord = value === undefined || value === null || typeof value === "boolean";
    const kind = value === undefined ? "" : isWord ? String(value) : "is";
    const [choiceId, textId] = [`is-${name}`, `key-${name}`];
    const marks = this.#marks(name);
    const text = { id: textId, "data-field": name, ...marks };
    return h(
      "div",
      { class: "field", "data-key": `field ${name}` },
      h("label", { for: type === "boolean" ? choiceId : textId }, named(name), " ", h("small", null, type)),
      select({ id: choiceId, "aria-label": `${name} of the key` }, ["", ...kinds, "null"], kind),
      type !== "boolean" && typing(text, type === "string", isWord ? "" : String(value)),
      this.#wrong(name),
    );
  }

  /** The errors of the question, each with its place: a field, "metrics", or "key" for the key as a whole. */
  get #errors() {
    const refused = this.#values?.problem;
    const fields = new Set(this.#fields().map(([name]) => name));
    return (refused?.status === 422 ? refused.errors : []).map(({ loc: [part, , field], msg }) => {
      if (part !== "keys") {
        return ["metrics", msg];
      }
      return fields.has(field) ? [field, msg] : ["key", field === undefined ? msg : `${field}: ${msg}`];
    });
  }

  #marks(place) {
    const isWrong = this.#errors.some(([at]) => at === place);
    return { "aria-invalid": isWrong && "true", "aria-describedby": isWrong && `wrong-${place}` };
  }

  #wrong(place) {
    const said = this.#errors.filter(([at]) => at === place).map(([, msg]) => msg);
    return said.length > 0 && h("p", { class: "wrong", role: "alert", id: `wrong-${place}` }, said.join("; "));
  }

  /** Whether nobody is shown the time of events. */
  get #masksTime() {
    return this.masks.data.masked.fields.includes(this.stream.data.time);
  }

  #answer() {
    if (this.#values === null || this.#values.problem?.status === 422) {
      // What is wrong stands at its place in the form.
      return false;
    }
    const [stream, hasToken] = [this.rest[0], this.who.name !== null];
    return [
      h(
        "header",
        { class: "head" },
        h("h2", null, "Values"),
        standing(this.#values),
        this.#values.data && places(this.#values.data[0].as_of, this.#masksTime),
      ),
      shown(this.#values, "values", ([found]) => this.#found(found)),
      h("h2", null, "The same by curl"),
      hasToken && h("p", null, "It reads the token from the variable ", h("code", null, "RAILGUN_TOKEN"), "."),
      copyable(curlOf(stream, this.#question, hasToken)),
      h("h2", null, "The same in Python"),
      copyable(pythonOf(stream, this.#question, hasToken)),
    ];
  }

  #found(found) {
    const known = new Map(this.metrics.data.metrics.map((each) => [each.name, each]));
    const text = this.querySelector("#find")?.value.trim().toLowerCase() ?? "";
    const wanted = ([name]) => `${name} ${known.get(name)?.sql}`.toLowerCase().includes(text);
    const { masked: { metrics: covered }, times, conditions: names, derived } = this.masks.data;
    const masked = new Set(covered);
    const all = Object.entries(found.metrics).filter(([name]) => !masked.has(name));
    const hidden = Object.keys(found.metrics).filter((name) => masked.has(name));
    const some = all.filter(wanted);
    const rows = some.slice(0, ROWS_MAX).map(([name, value]) => [
      name,
      [
        named(name),
        valueShown(value, times.includes(name)),
        notes(found, known.get(name), name, this.#masksTime),
        h("code", null, known.get(name)?.sql),
      ],
    ]);
    return [
      h("p", { class: "key" }, h("code", { tabindex: 0 }, written(found.key))),
      lastEvents(this.rest[0], found.key, this.masks.data, newestOf(found.key, all, known, this.stream.data.time)),
      isUnknown(found, known, masked) &&
        h("p", { class: "note", "data-key": "unknown" }, this.#question.metrics ? NOT_BY_THESE : UNKNOWN),
      conditions(Object.fromEntries(all), names),
      h(
        "div",
        { class: "find" },
        labelled(
          "Find",
          h("input", { id: "find", type: "search", placeholder: "a part of a name or its SQL", autocomplete: "off" }),
        ),
        h("span", { class: "quiet", role: "status" }, `${number(some.length)} of ${number(all.length)}`),
      ),
      table("Values", VALUES, rows),
      hidden.length > 0 && h("p", { class: "remark" }, `Not shown, as they would tell a masked field: ${hidden.join(", ")}.`),
      some.length > ROWS_MAX && h("p", { class: "quiet" }, `The first ${ROWS_MAX} are shown; find others by name.`),
      untold(this.rest[0], this.metrics.data.metrics, found, this.#question.metrics, derived),
    ];
  }
}

function select(attributes, kinds, chosen) {
  const options = kinds.map((each) => h("option", { value: each, selected: each === chosen }, each || "left out"));
  return h("select", attributes, options);
}

/** What somebody types into. A text may have several lines. */
function typing(attributes, isText, value) {
  const more = { ...attributes, autocomplete: "off", spellcheck: "false" };
  const made = isText ? h("textarea", { ...more, rows: 1 }) : h("input", { ...more, type: "text" });
  made.value = value;
  return made;
}

/**
 * A link to those last events of a key that a front-end has taken, and when the very last one was. A key with a masked
 * field has none: events are shown without it.
 *
 * data: what is known of the stream's last events.  newestMs: the time of the key's last event; null if it is not known.
 */
function lastEvents(stream, key, data, newestMs) {
  const names = Object.keys(key);
  const isTold = names.length > 0 && !names.some((name) => data.masked.fields.includes(name));
  const some = taken(data);
  return (
    isTold &&
    h(
      "p",
      { class: "links", "data-key": "events" },
      liveOf(stream, { fields: key }, "Some of its last events"),
      newestMs !== null && h("span", null, "The last one is of ", when(newestMs)),
      some !== null && quiet(`${some}.`),
    )
  );
}

/** The time of a key's last event, where a metric of just this key has it: `last` of the stream's time, of all events. */
function newestOf(key, values, known, time) {
  const size = Object.keys(key).length;
  const [, value] =
    values.find(([name]) => known.get(name)?.key?.length === size && isNewest(known.get(name).sql, time)) ?? [];
  return value instanceof Digits ? Number(value.text) : null;
}

function isNewest(sql, time) {
  return sql.startsWith(`SELECT last(${time}) AS `) && NEWEST.test(sql);
}

function valueShown(value, isTime) {
  const found = special(value, isTime);
  if (found !== null) {
    return found;
  }
  if (value instanceof Digits) {
    return grouped(value.text);
  }
  if (DECIMAL.test(value)) {
    return value;
  }
  return h("code", { tabindex: String(value).length > LONG && 0 }, value === "" ? '""' : String(value));
}

/** 12345.6789 is 12,345.6789: no digit is lost. */
function grouped(digits) {
  return digits.replace(/^-?\d+(?![\deE])/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
}

function notes({ warming, partial }, metric, name, masksTime) {
  const since = partial?.[name];
  return [
    warming?.includes(name) && h("span", { class: "state off" }, warmth(metric)),
    since !== undefined &&
      h("span", null, "only of what is later", !masksTime && [" than ", when(Number(since.text))]),
  ];
}

function warmth(metric) {
  return metric?.warming ? `warming, ${share(metric.filled)}` : "warming";
}

/** How far the task of each partitioner was. */
function places(asOf, masksTime) {
  return h("ul", { class: "places" }, Object.entries(asOf).map((each) => reached(each, masksTime)));
}

function reached([partitioner, { time, offset }], masksTime) {
  const at = !masksTime && time !== null && ["as of the event time ", when(Number(time.text)), ", "];
  const place = [at, time === null && "before its first event, ", `offset ${grouped(offset.text)}`];
  return h("li", { "data-key": partitioner }, named(partitioner), ": ", place);
}

customElements.define("page-lookup", Lookup);
