// A question for a key's values: the body of its POST, as it stands in the address too; and how a shell and Python ask it.

import { Digits, isFlat, isNumber, parsed, written } from "./exact.js";
import { h } from "./dom.js";
import { python, quoted } from "./quoting.js";

/** What the page's address has behind its name: the stream, and the body of the POST. */
export function addressOf(stream, question) {
  const body = question && encodeURIComponent(written(question));
  return `#/lookup/${encodeURIComponent(stream)}${body ? `/${body}` : ""}`;
}

/** A link that looks up a metric, or all of a stream, whose key is to be typed. */
export function lookUp(stream, metric) {
  const question = metric === undefined ? undefined : { keys: [], metrics: [metric] };
  const says = metric === undefined ? `Look up a key of ${stream}` : `look up ${metric}`;
  return h("a", { href: addressOf(stream, question), "aria-label": says }, metric === undefined ? says : "look up");
}

/** Reads a question: `{keys, metrics}`, with at most one key; no metrics stand for all. Throws SyntaxError. */
export function questionOf(text) {
  const { keys, metrics } = Object(parsed(text));
  const areNames = metrics === undefined || (Array.isArray(metrics) && metrics.every((each) => typeof each === "string"));
  if (!Array.isArray(keys) || keys.length > 1 || !keys.every(isFlat) || !areNames) {
    throw new SyntaxError("no question");
  }
  return metrics === undefined ? { keys } : { keys, metrics };
}

/** What was typed into the field of a key, as its type has it in JSON. What does not fit goes as text: the server says so. */
export function valueOf(typed, type) {
  const text = typed.trim();
  return ["long", "double", "timestamp"].includes(type) && isNumber(text) ? new Digits(text) : typed;
}

/** The command by which a shell asks. has: a token. */
export function curlOf(stream, question, hasToken) {
  const lines = [
    `curl --silent --show-error ${quoted(`${location.origin}/v1/streams/${encodeURIComponent(stream)}/values`)}`,
    "-H 'Content-Type: application/json'",
    hasToken && `-H "Authorization: Bearer $RAILGUN_TOKEN"`,
    `--data ${quoted(written(question))}`,
  ];
  return lines.filter(Boolean).join(" \\\n  ");
}

/** The program by which Python asks. */
export function pythonOf(stream, { keys, metrics }, hasToken) {
  const given = [python(location.origin), hasToken && 'token=os.environ["RAILGUN_TOKEN"]'].filter(Boolean);
  const asked = [python(stream), "[key]", metrics && python(metrics)].filter(Boolean);
  return [
    ...(hasToken ? ["import os", ""] : []),
    "import railgun",
    "",
    `key = ${python(keys[0])}`,
    `with railgun.Client(${given.join(", ")}) as client:`,
    `    (values,) = client.values(${asked.join(", ")})`,
    "    print(values)",
  ].join("\n");
}
