// How a server stands now: warnings, the cluster, the traffic of each stream, metrics that warm, the front-end.

import { Answering, process } from "./answering.js";
import { mayReadSome } from "./api.js";
import { Begin } from "./begin.js";
import { h } from "./dom.js";
import { bytes, counted, duration, number, share } from "./format.js";
import { lately } from "./lately.js";
import { Page } from "./page.js";
import { bar, figures, nothingToRead, sentence, shown, table, told } from "./parts.js";
import { traffic } from "./traffic.js";

const EVERY_MS = 1_000;
const ANOTHER = "Each counts by itself, so all rates here are the new one's, and begin with it.";
const ROWS_MAX = 100;
const NAMED_MAX = 5;
const CLUSTER = "#/cluster";
const WARMING = [["Metric", "name"], ["Stream", "name"], ["How far"]];
const COPIES = {
  answering: ["Copies answering"],
  silent: ["Copies silent"],
  behind: ["Copies behind", "off"],
  failed: ["Copies failed", "bad"],
  closed: ["Copies closed"],
  unheard: ["No report", "off"],
};
const NODES = { live: false, away: "bad", draining: "off", drained: false };

class Overview extends Page {
  #answering = new Answering();

  begin() {
    this.live = this.poll("/v1/live", EVERY_MS);
  }

  content() {
    return [
      this.head("Overview", this.live),
      ...shown(this.live, "how the server stands", (live) => this.#all(live)),
    ];
  }

  #all(live) {
    const sees = live.process !== undefined;
    this.#answering.note(live.front_end, this.live.atMs);
    return [
      source(live.front_end),
      this.#answering.said(this.live.atMs, ANOTHER),
      warnings(live),
      live.cluster && this.#cluster(live, live.cluster),
      live.cluster && unanswered(live.cluster),
      live.cluster?.lately && newest(live.cluster.lately),
      this.#streams(live.streams),
      this.#warming(live),
      sees ? this.#process(live, live.process) : withoutScope(),
    ].flat();
  }

  /** How long ago something was so, by the clock of the server. */
  #age(live, ms) {
    const at = ms !== null && this.live.atMs - Math.max(0, live.as_of_ms - ms);
    return h("p", { class: "standing" }, at === false ? "not known yet" : h("console-age", { at }));
  }

  #cluster(live, cluster) {
    const { leader, wanted, moves, nodes, copies } = cluster;
    const known = cluster.as_of_ms !== null;
    const rest = [
      ["Leader", leader ?? "none", leader === null && "bad"],
      ...inOrder(nodes, NODES).map(([state, count]) => [`Nodes ${state}`, number(count), NODES[state]]),
      ...inOrder(copies, COPIES).map(([state, count]) => {
        const [name, kind] = COPIES[state] ?? [state];
        return [name, number(count), kind];
      }),
      ["Copies wanted of each task", number(wanted)],
      ["Moves left", number(moves)],
    ];
    return section("cluster", "Cluster", this.#age(live, cluster.as_of_ms), known && figures(rest));
  }

  #streams(streams) {
    if (streams.length) {
      return section("streams", "Streams", null, traffic(streams));
    }
    if (!mayReadSome(this.who)) {
      return nothingToRead();
    }
    // It has state of its own, so it is one element.
    const made = h("console-begin", { "data-key": "begin" });
    made.who = this.who;
    return made;
  }

  /** The metrics that do not answer yet, those first that are least far. */
  #warming(live) {
    const own = live.streams.filter(({ warming }) => warming?.count > 0);
    if (!own.length) {
      return false;
    }
    const found = own.flatMap(({ name, warming }) => warming.least.map((each) => ({ ...each, stream: name })));
    const rows = found.sort((one, other) => one.filled - other.filled).slice(0, ROWS_MAX).map(warmingRow);
    const left = own.reduce((sum, { warming }) => sum + warming.count, -rows.length);
    return section(
      "warming",
      "Metrics that warm",
      this.#age(live, Math.min(...own.map(({ warming }) => warming.as_of_ms))),
      table("Metrics that warm", WARMING, rows),
      left > 0 && h("p", { class: "quiet" }, `Those that are least far; ${number(left)} more are warming.`),
    );
  }

  #process(live, { release, in_flight_events, in_flight_bytes, waiting, disk }) {
    const now = [
      ["Release", release],
      ["In flight", `${counted(in_flight_events, "event")}, ${bytes(in_flight_bytes)}`],
    ];
    if (waiting !== null) {
      const { events, bytes: size, oldest_s } = waiting;
      const oldest = events > 0 && `, the oldest for ${duration(1_000 * oldest_s)}`;
      now.push(["Not answered by the cluster yet", [`${counted(events, "event")}, ${bytes(size)}`, oldest]]);
    }
    return [section("front-end", "Front-end", null, figures(now)), disk !== null && this.#disk(live, disk)];
  }

  #disk(live, disk) {
    const sizes = [
      ["Events", bytes(disk.events_bytes)],
      ["State", bytes(disk.state_bytes)],
      ["Log", bytes(disk.log_bytes)],
      ["Free", bytes(disk.free_bytes)],
    ];
    return section("disk", "Disk", this.#age(live, disk.as_of_ms), figures(sizes));
  }
}

/** Counts by state, always in the same order. states: the known ones in theirs. */
function inOrder(counts, states) {
  const names = new Set([...Object.keys(states), ...Object.keys(counts).sort()]);
  return [...names].filter((name) => Object.hasOwn(counts, name)).map((name) => [name, counts[name]]);
}

function section(key, title, standing, ...content) {
  return h("section", { "data-key": key }, h("header", { class: "head" }, h("h2", null, title), standing), content);
}

function source(frontEnd) {
  return h("p", { class: "lead" }, "Counts and latencies of the front-end ", process(frontEnd), ".");
}

/** What somebody should see to, each with the page that shows more of it. */
function warnings(live) {
  const found = [...ofProcess(live), ...live.streams.flatMap((stream) => ofStream(stream, live))];
  if (!found.length) {
    const said = isUnknown(live.cluster) ? "No node has reported yet: what to warn of is not known." : "Nothing to warn of.";
    return h("p", { class: "quiet", "data-key": "no warnings" }, said);
  }
  const said = found.map(([text, ...links]) =>
    h(
      "li",
      null,
      links[0]?.[0] === CLUSTER ? told(text) : sentence(text),
      links.map(([href, title]) => [" ", h("a", { href }, title)]),
    ),
  );
  return h(
    "section",
    { class: "problem", "aria-label": "Warnings", "aria-live": "polite", "data-key": "warnings" },
    h("ul", null, said),
  );
}

/** Whether there is a cluster of which nothing was heard yet. */
function isUnknown(cluster) {
  return Boolean(cluster) && (cluster.as_of_ms === null || !Object.values(cluster.nodes).some((count) => count > 0));
}

function ofProcess({ process: own, cluster }) {
  const place = cluster ? [[CLUSTER, "Cluster"]] : [];
  const found = own && !own.ready ? [`not ready: ${own.reason}`] : [];
  const linked = [...found, ...(cluster?.warnings ?? [])].map((text) => [text, ...place]);
  // A front-end of an older release says none of itself.
  return [...linked, ...(own?.warnings ?? []).map((text) => [text])];
}

function ofStream({ name, warnings: own, unanswered: tasks, nulls }, { cluster }) {
  const place = `#/streams/${encodeURIComponent(name)}`;
  const found = [...own];
  if (tasks > 0 && !cluster) {
    // With the cluster's part, its warnings and the list of these tasks say it.
    found.push(`nobody answers ${counted(tasks, "task")} of it`);
  }
  return [...found.map((text) => [text, [place, `Stream ${name}`]]), ...ofNulls(nulls?.always ?? [], name, place)];
}

/** What is said of metrics that were never answered anything but null lately. */
function ofNulls(names, stream, place) {
  if (!names.length) {
    return [];
  }
  const links = names.slice(0, NAMED_MAX).map((each) => [`${place}/${encodeURIComponent(each)}`, each]);
  const more = names.length - links.length;
  return [
    [
      `${counted(names.length, "metric")} of ${stream} ${names.length === 1 ? "was" : "were"} nothing but null lately, ` +
        "in some of the replies:",
      ...links,
      ...(more > 0 ? [[place, `and ${number(more)} more`]] : []),
    ],
  ];
}

function unanswered({ unanswered: count, unanswered_tasks: names }) {
  const more = count - names.length;
  return (
    count > 0 &&
    section(
      "unanswered",
      `Tasks that nobody answers: ${number(count)}`,
      null,
      h("ul", { class: "names", tabindex: 0 }, names.map((each) => h("li", null, h("code", null, each)))),
      more > 0 && h("p", { class: "quiet" }, `and ${number(more)} more`),
    )
  );
}

function newest(noted) {
  const all = noted.entries.length > 0 && h("p", null, "More of it: ", h("a", { href: CLUSTER }, "Cluster"));
  return section("lately", "Lately", null, lately(noted), all);
}

/** The row of a metric that does not answer yet. */
function warmingRow({ stream, name, filled }) {
  const cells = [
    h("code", null, name),
    h("a", { href: `#/streams/${encodeURIComponent(stream)}` }, stream),
    bar(filled, 1, share(filled)),
  ];
  return [`${stream} ${name}`, cells];
}

function withoutScope() {
  const said = "The front-end, its disk and the cluster are not shown: this token lacks the scope ";
  return h("p", { class: "note", "data-key": "without scope" }, said, h("code", null, "metrics"), ".");
}

customElements.define("console-begin", Begin);
customElements.define("page-overview", Overview);
