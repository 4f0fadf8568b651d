// What has happened in a cluster lately, as the front-end that answers has noted it.

import { h } from "./dom.js";
import { counted } from "./format.js";
import { linked, table, when } from "./parts.js";

const FIRST_MAX = 10;
const COLUMNS = [["When"], ["What", "long"]];
const BAD = new Set(["node_away", "node_gone", "node_lost", "unit_ended", "unit_silent", "copy_failed"]);

/** The newest as a table, and those before it to open. */
export function lately(noted) {
  const { entries } = noted;
  const rows = entries.map((each, place) => [`${each.kind} ${each.first_ms} ${place}`, row(each)]);
  const earlier = rows.slice(FIRST_MAX);
  return [
    looked(noted),
    rows.length > 0 && table("Lately", COLUMNS, rows.slice(0, FIRST_MAX)),
    earlier.length > 0 &&
      h(
        "details",
        { "data-key": "earlier" },
        h("summary", null, `${counted(earlier.length, "entry", "entries")} before that`),
        table("Before that", COLUMNS, earlier),
      ),
  ];
}

/** From when to when it was looked. An older front-end does not say when it looked last. */
function looked({ since_ms, looked_ms = null, overdue, entries }) {
  if (overdue) {
    const last = when(looked_ms ?? since_ms);
    return h("p", { class: "off" }, "Not looked since ", last, ": what has happened after that is not known.");
  }
  const noted = entries.length ? "Noted by this front-end since " : "Nothing has happened that this front-end noted since ";
  return h("p", { class: "quiet" }, noted, when(since_ms), looked_ms !== null && ["; last look ", when(looked_ms)], ".");
}

function row({ kind, at_ms, first_ms, text }) {
  const first = first_ms < at_ms && h("p", { class: "remark" }, "the first at ", when(first_ms));
  return [when(at_ms), [h("span", { class: BAD.has(kind) && "bad" }, linked(text)), first]];
}
