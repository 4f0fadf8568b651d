// Values as a shell and as Python read them.

import { written } from "./exact.js";

const WORDS = { true: "True", false: "False", null: "None" };

/** A text as one word of a shell. */
export function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A value of JSON as Python has it. Strings have the same escapes in both. */
export function python(value) {
  return written(value, WORDS);
}
