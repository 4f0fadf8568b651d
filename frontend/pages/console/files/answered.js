// What a metric was answered lately: nulls, quantiles, a histogram.

import { h, s, update } from "./dom.js";
import { counted, number, percent } from "./format.js";
import { shown, standing, table, when } from "./parts.js";
import { Poll } from "./poll.js";

const EVERY_MS = 2_000;
const BAR = { width: 240, height: 12 };
const BINS = [["Value", "number"], ["Answers", "number"], ["Share", "amount"]];
const NOT_KNOWN =
  "What it was answered is not known: no reply with it was seen since this server started, or it is still warming.";
const ANOTHER =
  "Another front-end answers now, or it was started anew. Each knows only what it has answered itself since its start.";
const MASKED = "Its values would tell a masked field, so nothing of them is shown.";

/** The panel of one metric. stream: its name.  metric: its name; "" while none is shown. */
export class Answered extends HTMLElement {
  #poll = null;
  #frontEnd = null;
  #isAnother = false;

  constructor() {
    super();
    this.metric = "";
    this.addEventListener("click", (event) => {
      if (event.target.closest("[data-action=close]")) {
        const { metric } = this;
        this.show("");
        document.querySelector(`[data-metric="${CSS.escape(metric)}"]`)?.focus();
      }
    });
  }

  disconnectedCallback() {
    this.#poll?.stop();
  }

  /** Shows another metric; "" shows none. */
  show(metric) {
    this.#poll?.stop();
    this.#poll = null;
    this.#frontEnd = null;
    this.#isAnother = false;
    this.metric = metric;
    if (metric) {
      const place = `/v1/streams/${encodeURIComponent(this.stream)}/metrics/${encodeURIComponent(metric)}/answered`;
      this.#poll = new Poll(place, EVERY_MS, () => this.#draw());
      this.#poll.start();
    }
    this.#draw();
    this.querySelector("h2")?.focus();
  }

  #draw() {
    if (this.#poll === null) {
      update(this, []);
      return;
    }
    update(this, [
      h(
        "header",
        { class: "head", "data-key": `head of ${this.metric}` },
        h("h2", { tabindex: -1 }, "What ", h("code", null, this.metric), " was answered lately"),
        standing(this.#poll),
        h("button", { type: "button", "data-action": "close" }, "Close"),
      ),
      ...shown(this.#poll, `what ${this.metric} was answered`, (data) => [this.#another(data), lately(data)].flat()),
    ]);
  }

  /** Says that another front-end answers than when the panel was opened, or the same one since it was started again. */
  #another({ front_end: { name, started_ms: started } }) {
    const came = `${name} ${started}`;
    this.#isAnother ||= this.#frontEnd !== null && this.#frontEnd !== came;
    this.#frontEnd = came;
    return this.#isAnother && h("p", { class: "note", role: "status", "data-key": "another" }, ANOTHER);
  }
}

function lately({ front_end, kind, masked, rows, nulls, since_ms, as_of_ms, quantiles, histogram }) {
  if (masked || !rows) {
    return h("p", { class: "note" }, masked ? MASKED : NOT_KNOWN);
  }
  const isNumber = (kind === "number" || kind === "time") && quantiles !== null;
  const said = [
    ["Null", percent(nulls / rows)],
    ...(isNumber ? Object.entries(quantiles).map(([name, each]) => [name, written(each, kind)]) : []),
  ];
  const most = Math.max(...(histogram ?? []).map(({ count }) => count));
  return [
    h(
      "p",
      null,
      `Of ${counted(rows, "answer")} in some of the replies that ${front_end.name} gave, from `,
      ...[when(since_ms), " to ", when(as_of_ms), ". A busy second gives few of its replies, so quiet seconds weigh more."],
    ),
    h(
      "dl",
      { class: "figures" },
      said.map(([name, each]) => h("div", null, h("dt", null, name), h("dd", null, each))),
    ),
    histogram && nulls > 0 && h("p", { class: "quiet" }, "The shares below are of those that are not null."),
    histogram && table("Histogram", BINS, histogram.map((bin) => [bin.from, bar(bin, kind, rows - nulls, most)])),
    kind === "text" && h("p", { class: "note" }, "It is text, which has no histogram."),
  ];
}

function bar({ from, to, count }, kind, all, most) {
  const rect = s("rect", { width: Math.max(1, (BAR.width * count) / most), height: BAR.height, rx: 2 });
  const range = from === to ? written(from, kind) : [written(from, kind), " to ", written(to, kind)];
  return [
    kind === "boolean" ? String(from === 1) : range,
    number(count),
    [s("svg", { ...BAR, "aria-hidden": "true" }, count > 0 && rect), " ", percent(count / all)],
  ];
}

function written(value, kind) {
  if (kind === "time" && typeof value === "number") {
    return when(Math.round(value));
  }
  if (typeof value === "string") {
    return value;
  }
  const size = Math.abs(value);
  const isUsual = value === 0 || (size >= 1e-4 && size < 1e15);
  return isUsual ? value.toLocaleString("en", { maximumSignificantDigits: 6 }) : value.toExponential(3);
}

customElements.define("console-answered", Answered);
