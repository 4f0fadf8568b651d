// One event in full, with its reply: fields with links to what is known of its keys now, metrics, and derived ones as a tree.

import { derivedTree } from "./derived.js";
import { h } from "./dom.js";
import { bytes, number } from "./format.js";
import { named, problem, quiet, table, when } from "./parts.js";
import { addressOf } from "./question.js";
import { conditions, special } from "./value.js";

// As the server has it.
const KEPT_BYTES_MAX = 2 ** 18;

/** The id of an event, or its number where nobody is shown that. */
export function nameOf({ reply, number: place }) {
  const id = reply?.id ?? null;
  return id === null ? `event ${number(place)}` : String(id);
}

/** How an event came: over HTTP, or from which place of a topic. */
export function cameBy({ topic, partition, offset }) {
  return topic === null ? "HTTP" : [h("code", null, topic), " ", h("small", null, `${partition}@${offset}`)];
}

/** One event in full. known: the metrics of its stream, as far as the token may see them. */
export function one(event, stream, known) {
  const { reply, problem: refused, source } = event;
  return h(
    "section",
    { class: "one", "data-key": `one ${event.key}`, "aria-label": "One event" },
    h(
      "header",
      { class: "head" },
      h("h2", { tabindex: -1 }, nameOf(event)),
      h("button", { type: "button", "data-action": "close" }, "Close"),
    ),
    reply !== null && conditions(reply.metrics, source.conditions),
    figures(event),
    refused !== null && (refused.detail === null ? hidden(refused) : problem(refused, "this event")),
    event.text !== null && [h("h3", null, "As it came"), text(event)],
    h(
      "div",
      { class: "parts" },
      event.status === 200 && fields(event, stream, known),
      reply !== null && metrics(event, source),
    ),
  );
}

function fields(event, stream, known) {
  const lacks = event.fields === null;
  const said = lacks ? h("p", { class: "quiet" }, tooLarge(event)) : own(event, stream, known);
  return h("div", null, h("h3", null, "Fields"), said);
}

/** The fields of an event. Those that are a key of metrics lead to what is known of it now. */
function own({ fields: found, source: { times } }, stream, known) {
  const has = (name) => Object.hasOwn(found, name) && found[name] !== null;
  const keys = known.map(({ key }) => key).filter((key) => key?.length && key.every(has));
  const alone = new Set(keys.filter(({ length }) => length === 1).flat());
  const all = [...new Set(keys.flat())];
  const looks = Object.fromEntries([...alone].map((name) => [name, lookedUp(stream, found, [name], "look up")]));
  return [
    values("Fields", "Field", found, times, alone.size > 0 && looks),
    all.length > 1 && h("p", { class: "more" }, lookedUp(stream, found, all, `Look up ${all.join(", ")} together`)),
  ];
}

/** A link to the metrics of a key as they are now. names: of its fields. */
function lookedUp(stream, found, names, says) {
  const key = Object.fromEntries(names.map((name) => [name, found[name]]));
  const label = names.length === 1 && `look up ${names[0]} ${found[names[0]]}`;
  return h("a", { href: addressOf(stream, { keys: [key] }), "aria-label": label }, says);
}

function tooLarge({ size_bytes: size }) {
  return size > KEPT_BYTES_MAX ? `Its ${bytes(size)} are too many to be kept.` : "Its fields cannot be read any more.";
}

function hidden({ status, title }) {
  return h("p", { class: "note" }, `${status} ${title}. Why is not shown: it may quote a masked field.`);
}

function text(event) {
  const left = event.size_bytes - new TextEncoder().encode(event.text).length;
  return [
    h("pre", { class: "came", tabindex: 0 }, h("code", null, event.text)),
    left > 0 && h("p", { class: "quiet" }, `It has ${bytes(event.size_bytes)}; this is how it begins.`),
  ];
}

function figures(event) {
  const { reply } = event;
  const said = [
    ["Answered", when(event.at_ms)],
    ["Time of the event", reply && (reply.time === null ? quiet("masked") : when(reply.time))],
    ["Came", cameBy(event)],
    ["Size", event.size_bytes > 0 && bytes(event.size_bytes)],
    ["Late", reply?.late && Object.entries(reply.late).map(([name, what]) => `${name}: ${what}`).join(", ")],
    ["Duplicate for", reply?.duplicate?.join(", ")],
    ["Warming", reply?.warming?.join(", ")],
    ["Partial", reply?.partial && Object.keys(reply.partial).join(", ")],
    ["Not answered by", reply?.missing?.join(", ")],
  ];
  return h(
    "dl",
    { class: "figures" },
    said.filter(([, value]) => value).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );
}

function metrics(event, { derived, masked, times }) {
  const plain = Object.fromEntries(Object.entries(event.reply.metrics).filter(([name]) => !Object.hasOwn(derived, name)));
  const isDerived = Object.keys(event.reply.metrics).some((name) => Object.hasOwn(derived, name));
  const none = h("p", { class: "quiet" }, "There are none to show.");
  return [
    h("div", null, h("h3", null, "Metrics"), Object.keys(plain).length ? values("Metrics", "Metric", plain, times) : none),
    isDerived && h("div", null, h("h3", null, "Derived metrics"), derivedTree(event, derived, masked)),
  ];
}

/** A table of values. looks: links that stand beside some of them, by name. */
function values(label, head, found, times, looks) {
  const rows = Object.entries(found).map(([name, value]) => [
    name,
    [
      named(name),
      special(value, times.includes(name)) ?? h("code", null, String(value)),
      ...(looks ? [Object.hasOwn(looks, name) && looks[name]] : []),
    ],
  ]);
  return table(label, [[head, "name"], ["Value", "long"], ...(looks ? [["Now", "number"]] : [])], rows);
}
