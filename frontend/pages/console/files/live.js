// The last events of a stream with their replies, the newest first, as the front-end that answers keeps them.

import { Answering, keyOf } from "./answering.js";
import { mayWith } from "./api.js";
import { h } from "./dom.js";
import { cameBy, nameOf, one } from "./event.js";
import { Digits, parsed } from "./exact.js";
import { ALL, KINDS, addressOf, filterOf, kindOfTrue, liveOf, shows, trueOf } from "./filter.js";
import { counted, number, time } from "./format.js";
import { near } from "./near.js";
import { Page } from "./page.js";
import { choice, copyable, labelled, noStream, quiet, shown, table, when } from "./parts.js";
import { taken } from "./taken.js";
import { listed, special, truesOf } from "./value.js";

const EVERY_MS = 2_000;
const STREAMS_MS = 10_000;
// So many events are listed. Where those with some fields are looked for, it is among as many as a front-end can keep.
const LIMIT = 200;
const KEPT_MAX = 1_000;
const METRICS_MS = 10_000;
const SHORT_MAX = 140;
// Of a field in the list, and of all that is listed of an event.
const VALUE_MAX = 40;
const LINE_MAX = 400;
const TRUES_MAX = 5;
const NAMES_MAX = 20;
const ANOTHER = "Each keeps events of its own, so those here are the new one's alone.";
const NO_FILTER = "The address has no filter that can be read, so all events are shown.";
const COLUMNS = [["Answered", "short"], ["Event", "name"], ["Fields", "line"], ["Answer", "answer"], ["Came", "name"]];

class Live extends Page {
  #events = [];
  // What the last answer says beside its events.
  #source = null;
  // What events need of it, and its JSON. Derived metrics may be many, so events that came with the same ones share it.
  #shared = { text: "", source: null };
  // What was asked for: events with a number above this one; 0 for all.
  #last = 0;
  #answer = undefined;
  #passed = null;
  #answering = new Answering();
  #isStopped = false;
  #open = null;
  #filter = ALL;
  #isUnread = false;

  begin() {
    const [name, filter] = this.rest;
    if (name === undefined) {
      this.streams = this.poll("/v1/streams", STREAMS_MS);
      return;
    }
    this.#readFilter(filter);
    this.samples = this.poll(this.#path(), EVERY_MS, { read });
    if (mayWith(this.who, "read", name)) {
      const place = `/v1/streams/${encodeURIComponent(name)}`;
      // They say which fields are keys that can be looked up.
      this.metrics = this.poll(`${place}/metrics`, METRICS_MS);
      // It says which fields can be looked for.
      this.stream = this.#hasFields ? this.poll(place, METRICS_MS) : undefined;
    }
    this.addEventListener("click", (event) => this.#clicked(event.target.closest("[data-action]")));
    this.addEventListener("input", () => {
      const [text, kind] = ["#find", "#kind"].map((each) => this.querySelector(each).value);
      this.#filter = { ...this.#filter, text, kind };
      // What is typed stands in the address from now on. It is replaced, so that Back leaves the page.
      this.#isUnread = false;
      this.draw();
      history.replaceState(null, "", addressOf(name, this.#filter));
    });
  }

  #readFilter(text) {
    try {
      this.#filter = text === undefined ? ALL : filterOf(text);
    } catch {
      this.#isUnread = true;
    }
  }

  get #hasFields() {
    return Object.keys(this.#filter.fields).length > 0;
  }

  /** How many events are asked for, and held. */
  get #limit() {
    return this.#hasFields ? KEPT_MAX : LIMIT;
  }

  content() {
    return this.streams ? this.#all() : this.#one();
  }

  #all() {
    return [
      this.head("Live", this.streams),
      h("p", { class: "lead" }, "The last events of a stream with their replies. Of which one?"),
      ...shown(this.streams, "streams", ({ streams }) => {
        return choice(namesOf(streams, this.who), (name) => liveOf(name), noStream(this.who));
      }),
    ];
  }

  #one() {
    const [name] = this.rest;
    this.#take();
    return [
      h("p", { class: "back" }, h("a", { href: "#/live" }, "Another stream")),
      this.head(`Live: ${name}`, this.samples),
      ...shown(this.samples, `the last events of ${name}`, () =>
        this.#source.kept ? this.#list(this.#source) : [off(this.#source.front_end)],
      ),
    ];
  }

  #path() {
    const after = this.#last ? `&after=${this.#last}` : "";
    return `/v1/streams/${encodeURIComponent(this.rest[0])}/samples?limit=${this.#limit}${after}`;
  }

  /** Takes over what was answered since the last time. */
  #take() {
    const { data, atMs } = this.samples;
    if (data === this.#answer) {
      return;
    }
    this.#answer = data;
    if (data === undefined) {
      this.#forget();
    } else {
      this.#takeAnswer(data, atMs);
    }
  }

  #takeAnswer(data, atMs) {
    const from = keyOf(data.front_end);
    if (this.#last > 0 && (from !== keyOf(this.#source.front_end) || data.last < this.#last)) {
      // Its memory is another one, or the stream was made anew: what was asked for came after other numbers. What is
      // shown stays until all are here, which whoever answers then has.
      this.#passed = data.front_end;
      this.#last = 0;
      this.samples.path = this.#path();
      this.samples.now();
      return;
    }
    if (this.#passed !== null) {
      this.#answering.note(this.#passed, atMs);
      this.#passed = null;
    }
    this.#answering.note(data.front_end, atMs);
    const { events, ...source } = data;
    const shared = this.#sharedOf(source);
    const fresh = events.map((event) => ({ ...event, key: `${from} ${event.number}`, source: shared }));
    this.#events = (this.#last > 0 ? [...fresh, ...this.#events] : fresh).slice(0, this.#limit);
    this.#source = source;
    this.#last = data.last;
    this.samples.path = this.#path();
  }

  #sharedOf({ derived, masked, times, conditions }) {
    const source = { derived, masked, times, conditions };
    const text = JSON.stringify(source);
    if (text !== this.#shared.text) {
      this.#shared = { text, source };
    }
    return this.#shared.source;
  }

  #forget() {
    this.#events = [];
    this.#source = null;
    this.#last = 0;
    this.#open = null;
    this.samples.path = this.#path();
  }

  #clicked(action) {
    switch (action?.dataset.action) {
      case "stop":
        this.#isStopped = !this.#isStopped;
        if (this.#isStopped) {
          this.samples.stop();
          this.samples.sinceMs = null;
        } else {
          this.samples.start();
        }
        this.draw();
        break;
      case "open":
        this.#open = this.#events.find((each) => each.key === action.dataset.event) ?? null;
        this.draw();
        this.querySelector(".one h2")?.focus();
        break;
      case "close": {
        const { key } = this.#open;
        this.#open = null;
        this.draw();
        this.querySelector(`[data-event="${CSS.escape(key)}"]`)?.focus();
        break;
      }
    }
  }

  #list(data) {
    const found = this.#events.filter((each) => shows(this.#filter, each));
    const rows = found.slice(0, LIMIT).map((each) => [each.key, row(each, this.#open)]);
    return [
      this.#answering.said(this.samples.atMs, ANOTHER),
      this.#isUnread && h("p", { class: "problem", role: "alert" }, NO_FILTER),
      lead(data, this.#limit),
      this.#hasFields && this.#ofFields(data),
      data.masked.texts && masks(data.masked),
      this.#find(found.length, data.conditions ?? []),
      this.#open && one(this.#open, this.rest[0], this.metrics?.data?.metrics ?? []),
      found.length
        ? table("Last events", COLUMNS, rows, "stacked")
        : h("p", { class: "note", "data-key": "none" }, this.#events.length ? this.#none(data) : nothing(data)),
    ].filter(Boolean);
  }

  /** Why no event is shown: one has a field of that name only if the stream has it and does not mask it. */
  #none({ masked }) {
    const names = Object.keys(this.#filter.fields);
    const known = Object.keys(this.stream?.data?.fields ?? {});
    const unknown = known.length ? names.filter((name) => !known.includes(name)) : [];
    const hidden = names.filter((name) => masked.fields.includes(name));
    return [
      "None of the events is like that.",
      unknown.map((name) => [" ", unknownField(this.rest[0], name, known)]),
      hidden.map((name) => [" ", h("code", null, name), " is masked: events are shown without it."]),
    ];
  }

  /** Which fields the events that are shown have, and what that leaves out. */
  #ofFields({ front_end: { name } }) {
    return h(
      "p",
      { class: "note", "data-key": "fields" },
      "Only those with ",
      Object.entries(this.#filter.fields).map(([field, value], place) => [
        place > 0 && ", ",
        h("code", null, `${field}: ${value}`),
      ]),
      `. They are those that ${name} has taken and still keeps, so there may have been others. `,
      liveOf(this.rest[0], ALL, "Show all events"),
    );
  }

  /** conditions: the names of the metrics that are true or false. */
  #find(count, conditions) {
    const { text, kind: chosen } = this.#filter;
    const metric = trueOf(chosen);
    const names = metric === null || conditions.includes(metric) ? conditions : [metric, ...conditions];
    const option = (kind, title) => h("option", { value: kind, selected: kind === chosen }, title);
    const options = [
      ...Object.entries(KINDS).map(([kind, [title]]) => option(kind, title)),
      names.length > 0 && h("optgroup", { label: "where it is true" }, names.map((name) => option(kindOfTrue(name), name))),
    ];
    const typed = { id: "find", type: "search", placeholder: "text in event or reply", autocomplete: "off", value: text };
    const notes = [count > LIMIT && `, the first ${LIMIT} are listed`, this.#isStopped && ", stopped"];
    return h(
      "div",
      { class: "find", "data-key": "find" },
      h("button", { type: "button", "data-action": "stop" }, this.#isStopped ? "Go on" : "Stop"),
      labelled("Find", h("input", typed)),
      labelled("Show", h("select", { id: "kind" }, options)),
      h("span", { class: "quiet", role: "status" }, `${number(count)} of ${number(this.#events.length)}`, notes),
    );
  }
}

/** Reads an answer. The values of events keep their digits; all other numbers are those of JavaScript. */
function read(text) {
  const [found, exact] = [JSON.parse(text), parsed(text)];
  found.events.forEach((event, place) => {
    const { fields, reply } = exact.events[place];
    event.fields = fields;
    if (reply !== null) {
      Object.assign(event.reply, { id: reply.id, metrics: reply.metrics });
    }
  });
  return found;
}

/** The streams to choose from: those that the token may read, and those whose events it may see. */
function namesOf(streams, who) {
  const named = who.scopes.filter((each) => each.startsWith("inspect:")).map((each) => each.slice("inspect:".length));
  return [...new Set([...streams.map((each) => each.name), ...named.filter((each) => each !== "*")])];
}

function lead(data, limit) {
  const { kept, front_end: { name } } = data;
  const some = taken(data);
  return h(
    "p",
    { class: "lead" },
    `The last events that ${name} has taken, at most ${number(Math.min(kept, limit))}, the newest first`,
    kept > limit && ` (it keeps ${number(kept)})`,
    some !== null && `. ${some}`,
    ". At most 20 of a second are taken, and as many again that are late, duplicate or refused. ",
    "Find and Show look at the events of this list alone.",
  );
}

function masks({ fields, metrics }) {
  const names = [...fields, ...metrics].join(", ") || "no field that the stream has";
  return h("p", { class: "remark" }, `Masked: ${names}; and all texts that may quote an event.`);
}

function nothing({ front_end: { started_ms: started } }) {
  return ["It has answered no event of this stream since it started, ", when(started), "."];
}

/** Says that a stream has no such field, and which ones may have been meant; where none is near, which ones it has. */
function unknownField(stream, name, known) {
  const meant = near(name, known);
  return [
    `The stream ${stream} has no field `,
    h("code", null, name),
    ...(meant.length ? ["; did you mean ", listed(meant, NAMES_MAX), "?"] : [". It has ", listed(known, NAMES_MAX), "."]),
  ];
}

/** How to have events kept. */
function off({ name }) {
  return h(
    "div",
    { class: "note", "data-key": "off" },
    h("p", null, `${name} keeps no events. To see the last ones here, set this in its railgun.toml:`),
    copyable("[console]\nsamples = 200\n"),
    h("p", null, "Or in its environment: ", h("code", null, "RAILGUN_CONSOLE__SAMPLES=200"), ". Then start it again."),
    h(
      "p",
      null,
      "They lie in its memory alone, and those with the scope inspect:STREAM see them. ",
      h("code", null, "masks"),
      " beside it names fields that nobody is shown.",
    ),
  );
}

function row(event, open) {
  const isOpen = open?.key === event.key;
  return [
    when(event.at_ms),
    h(
      "button",
      { type: "button", "data-action": "open", "data-event": event.key, "aria-pressed": String(isOpen) },
      short(nameOf(event)),
    ),
    h("code", null, event.fields ? line(event.fields, event.source.times) : short(event.text ?? "")),
    answer(event),
    cameBy(event),
  ];
}

/** Fields on some lines. Where they are many, the shortest ones stay, as most of what people look for is short. */
function line(fields, times) {
  const said = Object.entries(fields).map(([name, value]) => {
    const found = times.includes(name) && value instanceof Digits ? time(Number(value.text)) : null;
    return `${name}:\u00a0${short(found?.local ?? String(value), VALUE_MAX)}`;
  });
  let left = LINE_MAX;
  const kept = [...said].sort((one, other) => one.length - other.length).filter((each) => (left -= each.length) >= 0);
  const shown = new Set(kept);
  const more = said.length - kept.length;
  return said.filter((each) => shown.has(each)).join(", ") + (more > 0 ? `, … ${number(more)} more` : "");
}

function short(text, max = SHORT_MAX) {
  return text.length > max ? `${text.slice(0, max)}…` : text;
}

function answer(event) {
  const { reply, problem: refused, status } = event;
  if (refused !== null || status !== 200) {
    return mark("bad", `${status} ${refused?.title ?? ""}`);
  }
  if (reply === null) {
    return quiet("none was wanted");
  }
  const trues = truesOf(reply.metrics);
  return [
    marks(reply),
    counted(Object.keys(reply.metrics).length, "metric"),
    trues.length > 0 && h("p", { class: "remark" }, special(true), " ", listed(trues, TRUES_MAX)),
  ];
}

function marks({ late, duplicate, warming, missing }) {
  return [
    late && mark("off", "late"),
    duplicate && mark("off", "duplicate"),
    warming && mark("off", "warming"),
    missing && mark("bad", "partial"),
  ];
}

function mark(kind, text) {
  return [h("span", { class: `state ${kind}` }, text), " "];
}

customElements.define("page-live", Live);
