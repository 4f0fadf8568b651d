// The events of each stream in the last 10 and 60 s, by the way that they came.

import { h } from "./dom.js";
import { counted, number, short } from "./format.js";
import { quiet } from "./parts.js";

const WAYS = [["http", "HTTP"], ["topics", "topics"]];
const WINDOWS = ["last_10_s", "last_60_s"];
const KINDS_MAX = 5;
const COLUMNS = [
  ...[["Stream", "name"], ["By"], ["Last", "number"], ["Events/s", "number"]],
  ...[["p50, ms", "number"], ["p99, ms", "number"], ["p99.9, ms", "number"]],
  ...[["Late"], ["Duplicate"], ["Refused"], ["Metrics", "number"]],
];

/** The table of all streams. Each has a row for each of its ways and windows. */
export function traffic(streams) {
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": "Traffic", tabindex: 0, "data-key": "traffic" },
    h(
      "table",
      { class: "traffic" },
      h("thead", null, h("tr", null, COLUMNS.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))),
      streams.map(ofStream),
    ),
  );
}

function ofStream(stream) {
  const ways = WAYS.filter(([key]) => stream[key] !== null);
  const rows = ways.length * WINDOWS.length;
  return h(
    "tbody",
    { "data-key": stream.name },
    ways.map(([key, title], nth) =>
      WINDOWS.map((window, place) =>
        h(
          "tr",
          { class: place > 0 && "minute" },
          nth + place === 0 && head(stream, rows),
          place === 0 && h("td", { rowspan: WINDOWS.length }, title),
          cells(stream[key][window]),
          nth + place === 0 && h("td", { class: "number", rowspan: rows }, metrics(stream)),
        ),
      ),
    ),
  );
}

function head({ name, unanswered }, rows) {
  return h(
    "th",
    { scope: "rowgroup", class: "name", rowspan: rows },
    h("a", { href: `#/streams/${encodeURIComponent(name)}` }, name),
    unanswered > 0 && h("p", { class: "bad" }, `nobody answers ${counted(unanswered, "task")}`),
  );
}

function metrics({ metrics: count, warming }) {
  const said = warming === null ? "warming not known yet" : warming.count > 0 && `${number(warming.count)} warming`;
  return [number(count), said && h("small", null, said)];
}

function cells({ seconds, events_per_s, late, duplicate, refused, latency }) {
  const { p50_ms, p99_ms, p999_ms } = latency;
  return [
    h("td", { class: "number" }, `${Math.round(seconds)} s`),
    h("td", { class: "number" }, short(events_per_s)),
    [p50_ms, p99_ms, p999_ms].map((ms) => h("td", { class: "number" }, ms === null ? quiet("–") : short(ms))),
    [late, duplicate, refused].map((counts) => h("td", { class: "counts" }, byName(counts))),
  ];
}

/** Counts by partitioner or reason, the greatest first. */
function byName(counts) {
  const found = Object.entries(counts).sort(([, one], [, other]) => other - one);
  const more = found.length - KINDS_MAX;
  return [
    found.length === 0 && quiet("0"),
    found.slice(0, KINDS_MAX).map(([name, count]) => h("div", null, h("code", null, name), ` ${number(count)}`)),
    more > 0 && h("div", null, `and ${number(more)} more`),
  ];
}
