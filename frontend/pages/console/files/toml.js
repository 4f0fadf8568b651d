// Definitions as TOML, as `railgun apply` takes them.

const ESCAPED = { "\b": "\\b", "\t": "\\t", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\" };
// What may not stand in a text of TOML as it is. A line break may, in one of several lines.
const CONTROLS = /["\\\u0000-\u0009\u000b-\u001f\u007f]/g;

/** The tables of queries. queries: texts of SQL. */
export function metricsToml(queries) {
  return queries.map((sql) => `[[metrics]]\nsql = """${escaped(sql.trim())}"""\n`).join("\n");
}

/** The tables of a stream. stream: as /v1/streams/NAME answers it; its names are words of letters, digits and _. */
export function streamToml({ name, fields, input, output, ...settings }) {
  const tables = [
    [`streams.${name}`, settings],
    [`streams.${name}.input`, input],
    [`streams.${name}.output`, output],
    [`streams.${name}.fields`, fields],
  ];
  const written = tables.filter(([, body]) => body !== undefined).map(([title, body]) => `[${title}]\n${lines(body)}`);
  return written.join("\n");
}

function lines(body) {
  return Object.entries(body)
    .map(([key, each]) => `${key} = ${value(each)}\n`)
    .join("");
}

function value(each) {
  if (typeof each === "string") {
    return line(each);
  }
  if (Array.isArray(each)) {
    return `[${each.map(value).join(", ")}]`;
  }
  if (typeof each === "object") {
    const pairs = Object.entries(each).map(([key, own]) => `${key} = ${value(own)}`);
    return `{ ${pairs.join(", ")} }`;
  }
  return String(each);
}

function line(text) {
  return `"${escaped(text).replaceAll("\n", "\\n")}"`;
}

function escaped(text) {
  return text.replace(CONTROLS, (each) => ESCAPED[each] ?? "\\u" + each.charCodeAt(0).toString(16).padStart(4, "0"));
}
