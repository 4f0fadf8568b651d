// What a key does not say: metrics that need an event or more of a key, and keys of which nothing is known.

import { h } from "./dom.js";
import { liveOf } from "./filter.js";
import { number } from "./format.js";
import { named } from "./parts.js";

const NAMES_MAX = 200;
// Of an empty set these are 0, and all others null.
const COUNTS = /\bcount(_distinct)?\s*\(/i;

/**
 * The metrics of a stream that an answer leaves out, each with why. asked: the metrics that a question names; undefined
 * for all.  derived: by name, what each reads.
 */
export function untold(stream, metrics, found, asked, derived) {
  const left = asked === undefined ? metrics.filter(({ name }) => !Object.hasOwn(found.metrics, name)) : [];
  if (!left.length) {
    return false;
  }
  const ofEvents = left.filter(({ key }) => key === null);
  const known = new Map(metrics.map(({ name, key }) => [name, key]));
  const says = left.map(({ name, key }) => [name, key === null ? readOf(name, derived, known) : lackOf(key, found.key)]);
  return h(
    "details",
    { "data-key": "untold" },
    h("summary", null, `Metrics that this key does not tell: ${number(left.length)}`),
    ofEvents.length > 0 && h("p", null, "Those that read fields of an event are in its reply: ", liveOf(stream), "."),
    h(
      "ul",
      { class: "places" },
      says.slice(0, NAMES_MAX).map(([name, why]) => h("li", { "data-key": name }, named(name), ": ", why)),
    ),
    left.length > NAMES_MAX && h("p", { class: "quiet" }, `and ${number(left.length - NAMES_MAX)} more`),
  );
}

function readOf(name, derived, known) {
  const fields = [...fieldsOf(name, derived, known, new Set())];
  return `needs an event, as it reads ${fields.join(", ") || "fields of it"}`;
}

/** The fields of an event that a derived metric reads, itself or through others. */
function fieldsOf(name, derived, known, seen) {
  if (seen.has(name)) {
    return new Set();
  }
  seen.add(name);
  if (!known.has(name)) {
    return new Set([name]);
  }
  const reads = Object.hasOwn(derived, name) ? derived[name].reads : [];
  return new Set(reads.flatMap((each) => [...fieldsOf(each, derived, known, seen)]));
}

function lackOf(key, given) {
  return `needs ${key.filter((name) => !Object.hasOwn(given, name)).join(", ")} in the key`;
}

/** Whether nothing is known of a key: whether all metrics that group by some of it are as of no event. */
export function isUnknown(found, known, masked) {
  const own = Object.entries(found.metrics).filter(([name]) => {
    const metric = known.get(name);
    return metric && metric.home !== null && metric.key?.length > 0 && !masked.has(name);
  });
  return own.length > 0 && own.every(([name, value]) => isEmpty(value, known.get(name)) && !found.warming?.includes(name));
}

function isEmpty(value, { sql }) {
  return value === null || (String(value) === "0" && COUNTS.test(sql));
}
