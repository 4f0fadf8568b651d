// The value of a field or metric that is more than its text: null, what is true, a time.

import { Digits } from "./exact.js";
import { h } from "./dom.js";
import { time } from "./format.js";
import { quiet, when } from "./parts.js";

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

/** Names, the first ones of many. */
export function listed(names, max) {
  const more = names.length - max;
  return names.slice(0, max).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
