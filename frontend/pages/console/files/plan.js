// What the metrics of a stream share: a picture of window, filter, grouping and aggregate, or a table where it is large.

import { h, s, seen, update } from "./dom.js";
import { bytes, counted, number, shortened } from "./format.js";
import { table } from "./parts.js";

const PICTURE_MAX = 100;
const ROWS_MAX = 200;
const COLUMNS = [
  ...[["Metric", "name"], ["Aggregate", "name"], ["Type", "name"], ["Home", "name"]],
  ...[["Window", "name"], ["Where", "long"], ["Group by", "name"]],
];
const DERIVED = [["Metric", "name"], ["Expression", "sql"], ["Type", "name"], ["Reads", "long"]];
// Text of the picture has one width for each character, which this is a little more than.
const CHARACTER = 7.4;
const LABEL_MAX = 40;
const [HEIGHT, GAP, ACROSS, PADDING] = [24, 8, 36, 9];

/** The metrics of a plan, each with the way that leads to it. plan: a stream of the answer of /v1/streams/NAME/plan. */
export function leaves(plan) {
  return plan.partitioners.flatMap(({ partitioner: home, windows }) =>
    windows.flatMap(({ text: window, interval, filters }) =>
      filters.flatMap(({ predicate, groups }) =>
        groups.flatMap(({ fields, metrics }) =>
          metrics.map((metric) => ({ ...metric, home, window, interval, predicate, fields })),
        ),
      ),
    ),
  );
}

/** In words what a partitioner's tasks have, and what sharing saves. */
export function summary({ metrics, windows, cursors, cells, cells_unshared: alone, rows }) {
  const saved = alone > cells ? ` instead of ${number(alone)}` : "";
  const size = rows.reduce((sum, each) => sum + each.size_bytes, 0);
  const parts = [counted(metrics, "metric"), counted(windows.length, "window"), counted(cursors, "cursor")];
  return `${parts.join(", ")}, ${counted(cells, "cell")}${saved}, ${bytes(size)} in the rows of an entity`;
}

/**
 * What of a plan a picture or a table shows.
 *
 * plan: a stream of an explanation.  keep: whether a metric of a name is shown.  title: of pictures and tables, since a page
 * has several.  fresh: the names that are new.
 */
export function drawn(plan, keep, title, fresh = new Set()) {
  const kept = leaves(plan).filter(({ name }) => keep(name));
  const derived = plan.derived.filter(({ name }) => keep(name));
  const isSmall = kept.length + derived.length <= PICTURE_MAX;
  return [
    plan.partitioners.map((each) => {
      const own = kept.filter(({ home }) => home === each.partitioner);
      return (
        own.length > 0 &&
        h(
          "section",
          { "data-key": `plan ${each.partitioner}` },
          h("h3", null, by(each.partitioner)),
          h("p", { class: "quiet" }, summary(each)),
          isSmall && picture(own, `${title}, ${by(each.partitioner)}`, fresh),
        )
      );
    }),
    kept.length > 0 && (isSmall ? asTable(kept, title) : [rows(kept, title), cut(kept.length)]),
    derived.length > 0 &&
      h(
        "section",
        { "data-key": "derived" },
        h("h3", null, "Derived, computed for each reply"),
        table(`${title}, derived metrics`, DERIVED, derived.slice(0, ROWS_MAX).map((each) => [each.name, derivedRow(each)])),
        cut(derived.length),
      ),
  ];
}

function by(partitioner) {
  return partitioner === "*" ? "All events together" : `By ${partitioner}`;
}

function asTable(kept, title) {
  return h("details", { "data-key": "as a table" }, h("summary", null, "The same as a table"), rows(kept, title));
}

function rows(kept, title) {
  return table(title, COLUMNS, kept.slice(0, ROWS_MAX).map((each) => [each.name, row(each)]));
}

function cut(count) {
  return count > ROWS_MAX && h("p", { class: "more" }, `These are the first ${ROWS_MAX} of ${number(count)}.`);
}

function row({ name, aggregate, type, home, window, predicate, fields }) {
  const place = [code(window), predicate === null ? "" : code(predicate), fields.join(", ")];
  return [code(name), code(aggregate), type, code(home), ...place];
}

function derivedRow({ name, expression, type, reads }) {
  return [code(name), code(expression), type, reads.join(", ")];
}

function code(text) {
  return h("code", null, text);
}

// --- the picture --------------------------------------------------------------------------------------

/** A drawing of metrics of one partitioner, in which what they share stands once. */
function picture(own, label, fresh) {
  const root = { below: new Map() };
  for (const each of own) {
    const names = [
      { kind: "window", text: each.window, title: each.interval },
      { kind: "filter", text: each.predicate === null ? "all events" : `WHERE ${each.predicate}` },
      { kind: "group", text: each.fields.length ? `GROUP BY ${each.fields.join(", ")}` : "everything together" },
      { kind: fresh.has(each.name) ? "metric fresh" : "metric", text: `${each.name} = ${each.aggregate}` },
    ];
    names.reduce((above, name) => under(above, name), root).title = `${each.type}`;
  }
  const columns = [[], [], [], []];
  const bottom = placed(root, -1, 0, columns);
  const widths = columns.map((nodes) => Math.max(...nodes.map(({ shown }) => shown.length)) * CHARACTER + 2 * PADDING);
  const lefts = widths.map((_, column) => 1 + sum(widths.slice(0, column)) + column * ACROSS);
  const [width, height] = [lefts[3] + widths[3] + 1, bottom - GAP + 2];
  const drawing = s(
    "svg",
    { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: ${said(columns)}` },
    columns.flatMap((nodes, column) => nodes.flatMap((node) => links(node, column, lefts, widths))),
    columns.flatMap((nodes, column) => nodes.map((node) => box(node, lefts[column], widths[column]))),
  );
  return h("div", { class: "scroll plan", role: "region", "aria-label": label, tabindex: 0 }, drawing);
}

function under(above, { kind, text, title }) {
  if (!above.below.has(text)) {
    above.below.set(text, { kind, text, title, shown: shortened(seen(text), LABEL_MAX), below: new Map() });
  }
  return above.below.get(text);
}

/** Gives each node its middle, and puts it into its column. Returns where the next one begins. */
function placed(node, column, top, columns) {
  let bottom = top;
  for (const each of node.below.values()) {
    bottom = placed(each, column + 1, bottom, columns);
  }
  if (column >= 0) {
    const below = [...node.below.values()];
    node.y = below.length ? (below[0].y + below.at(-1).y) / 2 : top + HEIGHT / 2 + 1;
    columns[column].push(node);
  }
  return node.below.size ? bottom : top + HEIGHT + GAP;
}

function links(node, column, lefts, widths) {
  const from = lefts[column] + widths[column];
  return [...node.below.values()].map(({ y }) => {
    const [to, bend] = [lefts[column + 1], (from + lefts[column + 1]) / 2];
    return s("path", { class: "link", d: `M${from} ${node.y} C${bend} ${node.y} ${bend} ${y} ${to} ${y}` });
  });
}

function box({ kind, text, title, shown, y }, left, width) {
  return s(
    "g",
    { class: kind },
    s("title", null, title ? `${text}   ${title}` : text),
    s("rect", { x: left, y: y - HEIGHT / 2, width, height: HEIGHT, rx: 5 }),
    s("text", { x: left + PADDING, y: y + 4 }, shown),
  );
}

function said([windows, filters, groups, metrics]) {
  const counts = [counted(windows.length, "window"), counted(filters.length, "filter"), counted(groups.length, "group")];
  return `${counts.join(", ")}, ${counted(metrics.length, "metric")}. The same is in the table.`;
}

function sum(values) {
  return values.reduce((all, each) => all + each, 0);
}

/** The plan of a stream. It draws anew only what has changed, since a picture has many elements. */
export class Plan extends HTMLElement {
  #shown = [];

  /** plan: a stream of an explanation.  found: the names that are shown; null for all. */
  show(plan, found) {
    const names = found && JSON.stringify([...found]);
    if (this.#shown[0] === plan && this.#shown[1] === names) {
      return;
    }
    this.#shown = [plan, names];
    update(this, drawn(plan, (name) => found === null || found.has(name), "Plan"));
  }
}

customElements.define("console-plan", Plan);
