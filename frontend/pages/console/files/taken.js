// How many events the last ones are taken from: under load a front-end takes some of a second.

import { counted, number } from "./format.js";

/** How many events a front-end has taken of how many; null where it has answered none, or is too old to say it. */
export function taken({ answered = 0, last, front_end: { name } }) {
  if (answered === 0) {
    return null;
  }
  const said = answered === last ? "all of them" : `${number(last)} of them`;
  return `Since ${name} started, it has answered ${counted(answered, "event")} of the stream, and has taken ${said}`;
}
