// The streams that there are.

import { h } from "./dom.js";
import { Page } from "./page.js";
import { noStream, quiet, shown, table } from "./parts.js";

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
        return [noStream(this.who)];
      }),
    ];
  }
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

customElements.define("page-streams", Streams);
