// The value of a field or metric that is more than its text: null, what is true, a time; and which conditions are true.

import { Digits } from "./exact.js";
import { h } from "./dom.js";
import { counted, number, time } from "./format.js";
import { named, quiet, when } from "./parts.js";

const NAMES_MAX = 50;

/** What is shown of such a value; null where its text says it all. isTime: whether it counts milliseconds. */
export function special(value, isTime) {
  if (value === null) {
    return quiet("null");
  }
  if (value === true) {
    // Thresholds are metrics that are true or false.
    return h("span", { class: "state off" }, "true");
  }
  const isRead = isTime && value instanceof Digits && time(Number(value.text)) !== null;
  return isRead ? h("span", { class: "short" }, when(Number(value.text)), " ", h("small", null, `(${value.text})`)) : null;
}

/** The names of the metrics that are true. */
export function truesOf(metrics) {
  return Object.keys(metrics).filter((name) => metrics[name] === true);
}

/**
 * Which conditions are true, and which are not known. Thresholds are conditions: metrics that are true or false.
 *
 * metrics: the values by name.  names: of all conditions of the stream; an older front-end does not say them.
 */
export function conditions(metrics, names = []) {
  const there = names.filter((name) => Object.hasOwn(metrics, name));
  const [trues, unknown] = [true, null].map((value) => there.filter((name) => metrics[name] === value));
  const none = `Of ${counted(there.length, "true-or-false metric")} none is true.`;
  const are = unknown.length === 1 ? "is" : "are";
  return (
    there.length > 0 &&
    h(
      "p",
      { class: "conditions", "data-key": "conditions" },
      trues.length ? [h("span", { class: "state off" }, "True"), ": ", listed(trues, NAMES_MAX), "."] : none,
      unknown.length > 0 && [` ${number(unknown.length)} ${are} not known: `, listed(unknown, NAMES_MAX), "."],
    )
  );
}

/** Names, the first ones of many. */
export function listed(names, max) {
  const more = names.length - max;
  const said = names.slice(0, max).map((name, place) => [place > 0 && ", ", named(name)]);
  return [said, more > 0 && ` and ${number(more)} more`];
}
