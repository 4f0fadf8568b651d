// JSON whose numbers keep their digits: a number of JavaScript has 53 bits, and sums of integers have more.

import { seen } from "./dom.js";

const NUMBER = "-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?";
const TOKEN = new RegExp(`"(?:[^"\\\\]|\\\\.)*"|${NUMBER}`, "gs");
const WHOLE = new RegExp(`^${NUMBER}$`);
const MARK = "\\u0000digits";
const KEY = "\0digits";

/** A number as JSON writes it. */
export class Digits {
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

/** Whether a text is a number of JSON. */
export function isNumber(text) {
  return WHOLE.test(text);
}

/** JSON to JavaScript; each number becomes Digits. Throws SyntaxError. */
export function parsed(text) {
  const marked = text.replace(TOKEN, (each) => (each[0] === '"' ? each : `{"${MARK}":"${each}"}`));
  return JSON.parse(marked, (_, value) =>
    isObject(value) && typeof value[KEY] === "string" ? new Digits(value[KEY]) : value,
  );
}

/** Whether what was read is an object. */
export function isObject(value) {
  return value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;
}

/** Whether what was read is an object of single values: null, booleans, texts, numbers. */
export function isFlat(value) {
  const isSingle = (each) => each === null || typeof each !== "object" || each instanceof Digits;
  return isObject(value) && Object.values(value).every(isSingle);
}

/** JavaScript to JSON of one line, without characters that are not seen. words: how true, false and null are written. */
export function written(value, words = {}) {
  if (value instanceof Digits) {
    return value.text;
  }
  if (Array.isArray(value)) {
    return `[${value.map((each) => written(each, words)).join(", ")}]`;
  }
  if (value !== null && typeof value === "object") {
    const pairs = Object.entries(value).map(([key, each]) => `${written(key)}: ${written(each, words)}`);
    return `{${pairs.join(", ")}}`;
  }
  return typeof value === "string" ? seen(JSON.stringify(value)) : words[value] ?? JSON.stringify(value);
}
