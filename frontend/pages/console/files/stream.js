// One stream: its metrics, the plan that they share, a form for more of them, its fields.

import { Answered } from "./answered.js";
import { deadOf } from "./dead.js";
import { h } from "./dom.js";
import { counted, number, percent, share } from "./format.js";
import { liveOf } from "./filter.js";
import { Page } from "./page.js";
import { bar, figures, quiet, shown, standing, table, when } from "./parts.js";
import { Plan } from "./plan.js";
import { Query } from "./query.js";
import { lookUp } from "./question.js";

const EVERY_MS = 5_000;
const LIVE_EVERY_MS = 2_000;
const PLAN_EVERY_MS = 60_000;
const ROWS_MAX = 200;
const FIELDS = [["Field", "name"], ["Type", "name"], ["Role"], ["From, or computed as", "long"], ["Unit"]];
const METRICS = [
  ...[["Metric", "name"], ["SQL", "sql"], ["Home", "name"], ["State"]],
  ...[["Null", "number"], ["Values"], ["Now", "name"]],
];

class Stream extends Page {
  #plan = Object.assign(new Plan(), { className: "plans" });
  #query = new Query();
  #answered = new Answered();
  #planned = null;
  #text = "";

  begin() {
    const [name, metric = ""] = this.rest;
    // The address may name a metric to be found.
    this.#text = metric.toLowerCase();
    const place = `/v1/streams/${encodeURIComponent(name)}`;
    this.stream = this.poll(place, EVERY_MS);
    this.metrics = this.poll(`${place}/metrics`, EVERY_MS);
    this.live = this.poll("/v1/live", LIVE_EVERY_MS);
    this.plan = this.poll(`${place}/plan`, PLAN_EVERY_MS);
    Object.assign(this.#query, { who: this.who, name, registered: () => this.metrics.now() });
    this.#plan.dataset.key = "plan";
    this.#query.dataset.key = "query";
    Object.assign(this.#answered, { stream: name }).dataset.key = "answered";
    this.addEventListener("input", (event) => {
      if (event.target.id === "find") {
        const text = event.target.value.trim();
        this.#text = text.toLowerCase();
        this.draw();
        // The link finds the same. It is replaced, so that Back leaves the page.
        history.replaceState(null, "", `#/streams/${[name, text].filter(Boolean).map(encodeURIComponent).join("/")}`);
      }
    });
    this.addEventListener("click", (event) => {
      const metric = event.target.closest("[data-metric]")?.dataset.metric;
      if (metric) {
        this.#answered.show(metric);
      }
    });
  }

  draw() {
    super.draw();
    const [plan] = this.plan.data?.streams ?? [];
    const metrics = this.metrics.data?.metrics;
    if (plan !== undefined) {
      this.#plan.show(plan, this.#text && metrics ? new Set(this.#found(metrics).map(({ name }) => name)) : null);
    }
    this.#query.know({ stream: this.stream.data, metrics, plan });
    this.#keepPlan(metrics);
  }

  /** Asks for the plan anew once other metrics are registered than it is of. */
  #keepPlan(metrics) {
    const registered = metrics && JSON.stringify(metrics.map(({ name, sql }) => [name, sql]));
    if (registered === undefined || registered === this.#planned || this.plan.sinceMs !== null) {
      return;
    }
    const isFirst = this.#planned === null;
    this.#planned = registered;
    if (!isFirst) {
      this.plan.now();
    }
  }

  content() {
    const [name] = this.rest;
    const back = h("p", { class: "back" }, h("a", { href: "#/streams" }, "All streams"));
    if (this.stream.data === undefined && this.stream.problem !== null) {
      // The rest would be refused for the same reason.
      return [back, this.head(name, this.stream), ...shown(this.stream, `the stream ${name}`)];
    }
    // Each has a key, so that the form, in which somebody types, is never moved.
    const about = shown(this.stream, `the stream ${name}`, settings);
    return [
      section("stream", back, this.head(name, this.stream), this.#links(name), about),
      section("metrics", head("Metrics", this.metrics), shown(this.metrics, "its metrics", (each) => this.#list(each))),
      this.#answered,
      section("more", h("h2", null, "More metrics")),
      this.#query,
      section(
        "plan head",
        head("Plan", this.plan),
        h("p", { class: "lead" }, "What its metrics share. Each box is computed once for all that follow it."),
        shown(this.plan, "its plan", () => []),
      ),
      this.#plan,
      this.stream.data && fields(this.stream.data),
    ];
  }

  #links(name) {
    return h("p", { class: "links" }, liveOf(name), lookUp(name), (this.#live?.topics ?? null) !== null && deadOf(name));
  }

  /** What /v1/live has of the stream; undefined where it is not known. */
  get #live() {
    return this.live.data?.streams.find(({ name }) => name === this.rest[0]);
  }

  #list({ metrics }) {
    if (!metrics.length) {
      return h("p", { class: "note" }, "It has no metric yet.");
    }
    const found = this.#found(metrics);
    const nulls = this.#live?.nulls;
    const rows = found.slice(0, ROWS_MAX).map((each) => [each.name, metricRow(this.rest[0], each, nulls?.shares[each.name])]);
    return [
      h(
        "div",
        { class: "find", "data-key": "find" },
        h("label", { for: "find" }, "Find by name or SQL"),
        h("input", { id: "find", type: "search", spellcheck: "false", autocomplete: "off", value: this.rest[1] }),
        h("span", { class: "quiet", role: "status" }, count(found.length, metrics.length)),
      ),
      table("Metrics", METRICS, rows),
      nulls && h("p", { class: "more quiet" }, "Null: of some of the last replies, up to ", when(nulls.as_of_ms), "."),
    ];
  }

  #found(metrics) {
    const has = (text) => text.toLowerCase().includes(this.#text);
    return metrics.filter(({ name, sql }) => has(name) || has(sql));
  }
}

function section(key, ...content) {
  return h("section", { "data-key": key }, content);
}

function head(title, poll) {
  return h("header", { class: "head" }, h("h2", null, title), standing(poll));
}

function count(found, all) {
  const said = found === all ? counted(all, "metric") : `${number(found)} of ${counted(all, "metric")}`;
  return found > ROWS_MAX ? `${said}; the first ${ROWS_MAX} are shown` : said;
}

function settings(stream) {
  const said = [
    ["Partitions", number(stream.partitions)],
    ["Lateness", stream.lateness],
    ["Late events", stream.late_policy === "discard" ? "discarded" : "rewritten"],
    ["Events kept", stream.retention],
    ["Ids remembered", number(stream.dedup_events)],
    ["Input", stream.input?.topics?.join(", ")],
    ["Output", stream.output?.topic],
  ];
  return figures(said.filter(([, value]) => value !== undefined));
}

function fields(stream) {
  const rows = Object.entries(stream.fields).map((each) => [each[0], fieldRow(each, stream)]);
  return h("section", { "data-key": "fields" }, h("h2", null, "Fields"), table("Fields", FIELDS, rows));
}

function fieldRow([name, field], stream) {
  const { type, from, unit, as } = typeof field === "string" ? { type: field } : field;
  const roles = [
    stream.time === name && "time",
    stream.id === name && "id",
    stream.partitioners.includes(name) && "partitioner",
  ];
  return [
    h("code", null, name),
    type,
    roles.filter(Boolean).join(", "),
    (as ?? from) && h("code", null, as ?? from),
    unit,
  ];
}

function metricRow(stream, { name, sql, home, warming, filled, outdated_zones: zones, key }, nulls) {
  return [
    h("code", null, name),
    h("code", null, sql),
    home === null ? quiet("derived") : h("code", null, home),
    [
      warming ? bar(filled, 1, `warming, ${share(filled)}`) : h("span", { class: "state good" }, "answers"),
      zones.length > 0 && h("p", { class: "remark" }, `Time zones that have changed since: ${zones.join(", ")}`),
    ],
    nulls === undefined ? quiet("not known") : h("span", { class: nulls === 1 ? "bad" : null }, percent(nulls)),
    h("button", { type: "button", "data-metric": name, "aria-label": `values of ${name}` }, "Show"),
    key !== null && lookUp(stream, name),
  ];
}

customElements.define("page-stream", Stream);
