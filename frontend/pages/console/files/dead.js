// The newest dead letters of a stream, and why each record could not be used. They are read when somebody asks.

import { DisconnectedError, ask } from "./api.js";
import { h } from "./dom.js";
import { bytes, counted, number } from "./format.js";
import { Page } from "./page.js";
import { choice, lacking, noStream, problem, quiet, shown, table, when } from "./parts.js";

const EVERY_MS = 10_000;
const PART = 50;
const KEPT_MAX = 2_000;
// One request reads so long. Between requests somebody may stop the reading, and is shown what there is.
const WITHIN_MS = 2_000;
const REASONS_MAX = 10;
// A longer text scrolls by itself.
const LONG = 200;
const ALL = "all";
const KINDS = {
  refused: "no event of the stream",
  late: "late, and discarded",
  damaged: "not readable in a task's log",
  other: "written by another program",
};
const LEAD = "Records of input topics that could not be used, the newest first: why, where they were, and their bytes.";
const MASKED = "A mask of the stream hides reasons, keys, values and headers.";
const NO_TOPICS = "This server reads an input topic of no stream that this token may read.";
const GONE = { status: 0, title: "No answer", detail: "the server has not answered", errors: [] };
const LETTERS = [
  ...[["When", "short"], ["Kind", "name"], ["Reason", "long"]],
  ...[["Record", "name"], ["Letter", "name"], ["Key, value, headers", "payload"]],
];
const REASONS = [["Reason", "long"], ["Letters", "number"], ["Newest", "short"]];

class Dead extends Page {
  #letters = [];
  #looked = 0;
  #before = null;
  #isMasked = false;
  #problem = null;
  #wasStopped = false;
  #readMs = null;
  #sinceMs = null;
  #ends = null;

  begin() {
    const [name, kind = ALL, reason = ""] = this.rest;
    if (name === undefined) {
      this.live = this.poll("/v1/live", EVERY_MS);
      return;
    }
    this.filter = { kind: Object.hasOwn(KINDS, kind) ? kind : ALL, reason };
    this.addEventListener("click", (event) => {
      const action = event.target.closest("button")?.dataset.action;
      if (action === "older") {
        this.#read();
      } else if (action === "stop") {
        this.#ends?.abort();
      }
    });
    this.addEventListener("submit", (event) => {
      event.preventDefault();
      this.filter = { kind: this.querySelector("#kind").value, reason: this.querySelector("#reason").value.trim() };
      history.pushState(null, "", addressOf(name, this.filter));
      this.#readAnew();
    });
    if (!this.#lacks()) {
      this.#readAnew();
    }
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#ends?.abort();
  }

  #lacks() {
    return lacking(this.who, ["inspect"], this.rest[0]);
  }

  #readAnew() {
    this.#ends?.abort();
    this.#letters = [];
    this.#looked = 0;
    this.#before = null;
    this.#read();
  }

  /** Reads on until there are as many letters more as are shown at once, or no more, or somebody stops it. */
  async #read() {
    const ends = (this.#ends = new AbortController());
    const wanted = this.#letters.length + PART;
    this.#sinceMs = Date.now();
    this.#problem = null;
    this.#wasStopped = false;
    try {
      do {
        this.draw();
        await this.#readPart(wanted - this.#letters.length, ends.signal);
      } while (this.#before !== null && this.#letters.length < wanted);
    } catch (error) {
      if (this.#ends !== ends) {
        return;
      }
      this.#wasStopped = ends.signal.aborted;
      if (!this.#wasStopped) {
        this.#problem = error instanceof DisconnectedError ? GONE : error;
      }
    }
    if (this.#ends === ends) {
      this.#ends = this.#sinceMs = null;
      if (this.isConnected) {
        this.draw();
      }
    }
  }

  async #readPart(limit, signal) {
    const { kind, reason } = this.filter;
    const query = new URLSearchParams({ limit, within_ms: WITHIN_MS });
    if (kind !== ALL) {
      query.set("kind", kind);
    }
    if (reason) {
      query.set("reason", reason);
    }
    if (this.#before !== null) {
      query.set("before", this.#before);
    }
    const found = await ask(`/v1/streams/${encodeURIComponent(this.rest[0])}/dead?${query}`, { signal });
    signal.throwIfAborted();
    this.#letters.push(...found.letters);
    this.#looked += found.read;
    this.#before = found.before;
    this.#isMasked = found.masked;
    this.#readMs = Date.now();
  }

  // --- what is shown

  content() {
    return this.live ? this.#choice() : this.#one();
  }

  #choice() {
    return [
      this.head("Dead letters", this.live),
      h("p", { class: "lead" }, LEAD),
      ...shown(this.live, "streams", ({ streams }) => {
        const names = streams.filter(({ topics }) => topics !== null).map(({ name }) => name);
        return choice(names, deadOf, streams.length ? h("p", { class: "note" }, NO_TOPICS) : noStream(this.who));
      }),
    ];
  }

  #one() {
    const [name] = this.rest;
    const lacks = this.#lacks();
    return [
      h("p", { class: "back" }, h("a", { href: `#/streams/${encodeURIComponent(name)}` }, "The stream ", name)),
      h(
        "header",
        { class: "head" },
        h("h1", { tabindex: -1 }, "Dead letters of ", name),
        h("p", { class: "standing" }, this.#readMs !== null && h("console-age", { at: this.#readMs })),
      ),
      h("p", { class: "lead" }, LEAD),
      lacks || [this.#form(), this.#problem && problem(this.#problem, `dead letters of ${name}`), this.#found()],
    ];
  }

  #form() {
    const kinds = [[ALL, "all"], ...Object.entries(KINDS).map(([kind, says]) => [kind, `${kind}: ${says}`])];
    return h(
      "form",
      { class: "find", "data-key": "form" },
      h("label", { for: "kind" }, "Kind"),
      h(
        "select",
        { id: "kind" },
        kinds.map(([kind, says]) => h("option", { value: kind, selected: kind === this.filter.kind }, says)),
      ),
      h("label", { for: "reason" }, "Reason"),
      reasonInput(this.filter.reason),
      h("button", { type: "submit", class: "main" }, "Read anew"),
    );
  }

  #found() {
    const letters = this.#letters;
    const isRead = this.#sinceMs === null;
    if (!letters.length && isRead && this.#problem !== null) {
      return false;
    }
    return [
      h(
        "div",
        { class: "reading", "data-key": "reading" },
        h("span", { role: "status" }, this.#standing()),
        !isRead && h("button", { type: "button", "data-action": "stop" }, "Stop"),
        !isRead && h("console-wait", { at: this.#sinceMs, what: "reading" }),
      ),
      this.#isMasked && h("p", { class: "note", "data-key": "masked" }, MASKED),
      letters.length > 0 && !this.#isMasked && reasons(letters),
      letters.length > 0 && [
        h("h2", { "data-key": "title" }, "Letters"),
        table("Letters", LETTERS, letters.map((each) => [placeOf(each), row(each, this.#isMasked)])),
      ],
      isRead && this.#before !== null && this.#more(),
    ];
  }

  #standing() {
    const found = `${counted(this.#letters.length, "letter")}, of ${counted(this.#looked, "record")} looked at`;
    if (this.#sinceMs !== null) {
      return `${found} so far`;
    }
    if (this.#wasStopped) {
      return `Stopped: ${found}`;
    }
    if (this.#before !== null) {
      return `${found}; there are older ones`;
    }
    return this.#looked ? `${found}: these are all` : "There is no dead letter";
  }

  #more() {
    if (this.#letters.length >= KEPT_MAX) {
      return h("p", { class: "more" }, `Older ones: GET /v1/streams/${this.rest[0]}/dead?before=${this.#before}`);
    }
    return h("p", { class: "more" }, h("button", { type: "button", "data-action": "older" }, "Older letters"));
  }
}

/** A link to the dead letters of a stream. */
export function deadOf(stream) {
  return h("a", { href: addressOf(stream, { kind: ALL, reason: "" }) }, "Dead letters of ", stream);
}

function addressOf(stream, { kind, reason }) {
  const parts = [stream, ...(reason ? [kind, reason] : kind === ALL ? [] : [kind])];
  return `#/dead/${parts.map(encodeURIComponent).join("/")}`;
}

function reasonInput(reason) {
  const more = { placeholder: "a part of the reason", autocomplete: "off", maxlength: 1_000 };
  const made = h("input", { id: "reason", type: "search", ...more });
  made.value = reason;
  return made;
}

/** The reasons that the most letters have, each with its newest letter. */
function reasons(letters) {
  const found = new Map();
  for (const { reason, time_ms: ms } of letters) {
    const known = found.get(reason) ?? { count: 0, ms };
    found.set(reason, { count: known.count + 1, ms: Math.max(known.ms, ms) });
  }
  const most = [...found].sort(([, one], [, other]) => other.count - one.count).slice(0, REASONS_MAX);
  const rows = most.map(([reason, { count, ms }], place) => [place, [said(reason), number(count), when(ms)]]);
  const others = found.size - most.length;
  return [
    h("h2", { "data-key": "reasons" }, "By reason"),
    table("By reason", REASONS, rows),
    others > 0 && h("p", { class: "quiet" }, `and ${counted(others, "other reason")}`),
  ];
}

function row(letter, isMasked) {
  const { record, late } = letter;
  return [
    when(letter.time_ms),
    [h("span", { class: "state" }, letter.kind), late !== null && h("small", { class: "by" }, `by ${late.join(", ")}`)],
    isMasked ? quiet("masked") : said(letter.reason),
    record === null ? quiet("none") : placed(record),
    placed(letter),
    isMasked ? quiet("masked") : payloads(letter),
  ];
}

function said(reason) {
  return reason === null ? quiet("none") : h("span", { class: "error", tabindex: reason.length > LONG && 0 }, reason);
}

function placed({ topic, partition, offset }) {
  const more = [partition !== null && `partition ${partition}`, offset !== null && `offset ${number(offset)}`];
  return [h("code", { class: "topic" }, topic), h("small", null, more.filter(Boolean).join(", "))];
}

function payloads({ key, value, headers }) {
  const all = [["key", key], ["value", value], ...headers.map((each) => [`header ${each.name}`, each.value])];
  return [
    h("code", { class: "glimpse" }, glimpse(value)),
    h(
      "details",
      null,
      h("summary", null, value === null ? "no value" : bytes(value.bytes)),
      all.map(([name, each], place) => [
        h("p", { class: "remark", "data-key": `name ${place}` }, name, ": ", sizeOf(each)),
        each !== null && h("pre", { tabindex: 0, "data-key": `bytes ${place}` }, h("code", null, each.text ?? each.base64)),
      ]),
    ),
  ];
}

function glimpse(value) {
  const text = value?.text ?? value?.base64 ?? "";
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

function sizeOf(value) {
  if (value === null) {
    return "null";
  }
  const written = value.base64 === null ? "text" : "no UTF-8, shown in base64";
  return `${bytes(value.bytes)}, ${written}${value.cut ? ", only its beginning" : ""}`;
}

function placeOf({ topic, partition, offset }) {
  return `${topic} ${partition} ${offset}`;
}

customElements.define("page-dead", Dead);
