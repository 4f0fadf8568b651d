// The streams that there are, each with its fields and metrics.

import { mayReadSome } from "./api.js";
import { deadOf } from "./dead.js";
import { h } from "./dom.js";
import { number, share } from "./format.js";
import { Page } from "./page.js";
import { bar, figures, nothingToRead, quiet, shown, standing, table } from "./parts.js";
import { lookUp } from "./question.js";

const EVERY_MS = 5_000;
const NAMES_MAX = 12;
const STREAMS = [
  ...[["Stream", "name"], ["Fields", "long"], ["Time", "name"], ["Id", "name"]],
  ...[["Partitioners"], ["Lateness", "number"], ["Kept", "number"]],
];
const FIELDS = [["Field", "name"], ["Type", "name"], ["Role"], ["From, or computed as", "long"], ["Unit"]];
const METRICS = [["Metric", "name"], ["SQL", "sql"], ["Home", "name"], ["State"], ["Now", "name"]];

class Streams extends Page {
  begin() {
    const [name] = this.rest;
    if (name === undefined) {
      this.streams = this.poll("/v1/streams", EVERY_MS);
      return;
    }
    const place = `/v1/streams/${encodeURIComponent(name)}`;
    this.stream = this.poll(place, EVERY_MS);
    this.metrics = this.poll(`${place}/metrics`, EVERY_MS);
  }

  content() {
    return this.streams ? this.#all() : this.#one();
  }

  #all() {
    return [
      this.head("Streams", this.streams),
      ...shown(this.streams, "streams", ({ streams }) => {
        if (streams.length) {
          return [table("Streams", STREAMS, streams.map((each) => [each.name, streamRow(each)]))];
        }
        return [mayReadSome(this.who) ? noStream() : nothingToRead()];
      }),
    ];
  }

  #one() {
    const [name] = this.rest;
    const back = h("p", { class: "back" }, h("a", { href: "#/streams" }, "All streams"));
    if (this.stream.data === undefined && this.stream.problem !== null) {
      // The metrics would be refused for the same reason.
      return [back, this.head(name, this.stream), ...shown(this.stream, `the stream ${name}`)];
    }
    return [
      back,
      this.head(name, this.stream),
      h("p", { class: "links" }, lookUp(name), this.stream.data?.input?.topics && deadOf(name)),
      ...shown(this.stream, `the stream ${name}`, (stream) => [
        settings(stream),
      ]),
      h("header", { class: "head" }, h("h2", null, "Metrics"), standing(this.metrics)),
      ...shown(this.metrics, "its metrics", ({ metrics }) => [
        metrics.length
          ? table("Metrics", METRICS, metrics.map((each) => [each.name, metricRow(name, each)]))
          : noMetric(name),
      ]),
      this.stream.data && fields(this.stream.data),
    ];
  }
}

function noMetric(name) {
  const route = h("code", null, `POST /v1/streams/${name}/metrics`);
  return h("p", { class: "note" }, "It has no metric yet. ", route, " adds some.");
}

function noStream() {
  const overview = h("a", { href: "#/overview" }, "overview");
  return h("p", { class: "note" }, "There is no stream yet. The ", overview, " has three ways to begin.");
}

function streamRow(stream) {
  const names = Object.keys(stream.fields);
  return [
    h("a", { href: `#/streams/${encodeURIComponent(stream.name)}` }, stream.name),
    [names.slice(0, NAMES_MAX).join(", "), names.length > NAMES_MAX && ` and ${names.length - NAMES_MAX} more`],
    stream.time ? h("code", null, stream.time) : quiet("arrival"),
    stream.id ? h("code", null, stream.id) : quiet("made"),
    stream.partitioners.map((each, place) => [place > 0 && ", ", h("code", null, each)]),
    stream.lateness,
    stream.retention,
  ];
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

function metricRow(stream, { name, sql, home, warming, filled, outdated_zones: zones, key }) {
  return [
    h("code", null, name),
    h("code", null, sql),
    home === null ? quiet("derived") : h("code", null, home),
    [
      warming ? bar(filled, 1, `warming, ${share(filled)}`) : h("span", { class: "state good" }, "answers"),
      zones.length > 0 && h("p", { class: "remark" }, `Time zones that have changed since: ${zones.join(", ")}`),
    ],
    key !== null && lookUp(stream, name),
  ];
}

customElements.define("page-streams", Streams);
