// The streams that there are; and how to begin where there are none.

import { Begin } from "./begin.js";
import { h } from "./dom.js";
import { Page } from "./page.js";
import { shown, table } from "./parts.js";

const EVERY_MS = 5_000;
const NAMES_MAX = 12;
const STREAMS = [
  ...[["Stream", "name"], ["Fields", "long"], ["Time", "name"], ["Id", "name"]],
  ...[["Partitioners"], ["Lateness", "number"], ["Kept", "number"]],
];

class Streams extends Page {
  begin() {
    this.streams = this.poll("/v1/streams", EVERY_MS);
  }

  content() {
    return [
      this.head("Streams", this.streams),
      ...shown(this.streams, "streams", ({ streams }) => {
        if (streams.length) {
          return [table("Streams", STREAMS, streams.map((each) => [each.name, streamRow(each)]))];
        }
        return mayReadSome(this.who) ? [begin(this.who)] : [nothingToRead()];
      }),
    ];
  }
}

/** How to begin. It has state of its own, so it is one element. */
function begin(who) {
  const made = h("console-begin", { "data-key": "begin" });
  made.who = who;
  return made;
}

function mayReadSome(who) {
  return who.scopes.some((each) => each === "*" || /^(read|define):/.test(each));
}

function nothingToRead() {
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("strong", null, "This token may not see any stream"),
    h("p", null, "It lacks the scope ", h("code", null, "read:STREAM"), "."),
  );
}

function streamRow(stream) {
  const names = Object.keys(stream.fields);
  return [
    h("a", { href: `#/streams/${encodeURIComponent(stream.name)}` }, stream.name),
    [names.slice(0, NAMES_MAX).join(", "), names.length > NAMES_MAX && ` and ${names.length - NAMES_MAX} more`],
    stream.time ? h("code", null, stream.time) : quiet("arrival"),
    stream.id ? h("code", null, stream.id) : quiet("made"),
    stream.partitioners.map((each, place) => [place > 0 && ", ", h("code", null, each)]),
    stream.lateness,
    stream.retention,
  ];
}

function quiet(text) {
  return h("span", { class: "quiet" }, text);
}

customElements.define("console-begin", Begin);
customElements.define("page-streams", Streams);
