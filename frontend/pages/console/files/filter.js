// Which of the last events the page Live shows: those with some fields, a text, of a kind. It stands in the address.

import { h } from "./dom.js";
import { isFlat, isObject, parsed, written } from "./exact.js";
import { truesOf } from "./value.js";

/** By its name, the title of each kind, and whether an event is of it. */
export const KINDS = {
  all: ["all events", () => true],
  late: ["late", ({ reply }) => reply?.late !== undefined],
  duplicate: ["duplicate", ({ reply }) => reply?.duplicate !== undefined],
  warming: ["with warming metrics", ({ reply }) => reply?.warming !== undefined],
  true: ["with a metric that is true", ({ reply }) => reply !== null && truesOf(reply.metrics).length > 0],
  refused: ["refused or not answered", ({ status }) => status !== 200],
};

const ONE_TRUE = "true ";

/** The kind of those events in whose reply one metric is true. */
export function kindOfTrue(metric) {
  return ONE_TRUE + metric;
}

/** The metric whose events are shown where it is true; null where a kind is not such a one. */
export function trueOf(kind) {
  return kind.startsWith(ONE_TRUE) ? kind.slice(ONE_TRUE.length) : null;
}

function isOf(kind, event) {
  const metric = trueOf(kind);
  return metric === null ? KINDS[kind][1](event) : event.reply?.metrics[metric] === true;
}

/** The filter that shows all. fields: values that an event has, by name.  text: in an event or its reply. */
export const ALL = { fields: {}, text: "", kind: "all" };

/** A link to the last events of a stream. filter: which of them. */
export function liveOf(stream, filter, says = ["Last events of ", stream]) {
  return h("a", { href: addressOf(stream, { ...ALL, ...filter }) }, says);
}

/** What the page's address has behind its name: the stream, and what of a filter is not as in ALL. */
export function addressOf(stream, filter) {
  const told = Object.entries(filter).filter(([name, value]) => written(value) !== written(ALL[name]));
  const place = `#/live/${encodeURIComponent(stream)}`;
  return told.length ? `${place}/${encodeURIComponent(written(Object.fromEntries(told)))}` : place;
}

/** Reads a filter of an address. Throws SyntaxError. */
export function filterOf(text) {
  const found = parsed(text);
  const { fields, text: wanted, kind } = { ...ALL, ...found };
  const areTexts = [wanted, kind].every((each) => typeof each === "string");
  if (!isObject(found) || !isFlat(fields) || !areTexts || (trueOf(kind) === null && !Object.hasOwn(KINDS, kind))) {
    throw new SyntaxError("no filter");
  }
  return { fields, text: wanted, kind };
}

/** Whether a filter shows an event. */
export function shows({ fields, text, kind }, event) {
  const has = ([name, value]) => Object.hasOwn(event.fields ?? {}, name) && written(event.fields[name]) === written(value);
  const wanted = text.trim().toLowerCase();
  return Object.entries(fields).every(has) && isOf(kind, event) && (!wanted || textOf(event).includes(wanted));
}

function textOf(event) {
  return written([event.fields, event.text, event.reply, event.problem]).toLowerCase();
}
