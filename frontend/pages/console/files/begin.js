// Three ways to begin, to copy: curl, Python, kcat. Each works as it stands.

import { may } from "./api.js";
import { h, update } from "./dom.js";
import { copyable, lacking, shown, waiting } from "./parts.js";
import { Poll } from "./poll.js";
import { quoted } from "./quoting.js";

const EVERY_MS = 2_000;
const HTTP_STREAM = "payments";
const KAFKA_STREAM = "payments_on_kafka";
const IN = "payments.events";
const OUT = "payments.scored";
const NEEDED = ["define", "score"];
const LEAD =
  "Each of these registers a stream of payments with two metrics, sends a payment, and shows what it is answered.";
const NO_BROKER =
  "It needs a broker, and this server has none: its log is a folder. These lines start another server, on a broker " +
  "of its own. Its console then has the lines for kcat: ";
const WITH_BROKER =
  "railgun broker start\nrailgun serve --broker 127.0.0.1:9092 --data data-on-kafka --http 127.0.0.1:8081";

/** An element with the three ways. who: the answer of /v1/whoami. */
export class Begin extends HTMLElement {
  // Whether there is a stream: while a server starts it does not know that.
  #streams = this.#untilKnown("/v1/streams");
  #status = this.#untilKnown("/v1/status");

  connectedCallback() {
    this.#draw();
    this.#streams.start();
    this.#status.start();
  }

  disconnectedCallback() {
    this.#streams.stop();
    this.#status.stop();
  }

  /** Makes a poll that asks until it is answered. */
  #untilKnown(path) {
    const made = new Poll(path, EVERY_MS, () => {
      if (made.data !== undefined) {
        made.stop();
      }
      this.#draw();
    });
    return made;
  }

  #draw() {
    update(this, [
      waiting(this.#streams),
      ...shown(this.#streams, "streams", ({ streams }) => (streams.length ? [] : this.#ways())),
    ]);
  }

  #ways() {
    const asks = { origin: location.origin, hasToken: this.who.name !== null };
    return [
      h("p", null, "There is no stream yet", !readsAll(this.who) && " that this token may read", "."),
      h("p", { class: "lead" }, LEAD),
      asks.hasToken && h("p", null, "They read the token from the variable ", h("code", null, "RAILGUN_TOKEN"), "."),
      lacking(this.who, NEEDED, HTTP_STREAM),
      h("h2", null, "curl"),
      copyable(curl(asks)),
      h("h2", null, "Python"),
      copyable(python(asks)),
      h("h2", null, "kcat"),
      waiting(this.#status, "asking for the broker's address"),
      ...this.#kcat(asks),
    ];
  }

  #kcat(asks) {
    return shown(this.#status, "the address of the broker, which kcat needs", ({ durability, folder }) => {
      if (durability === "kafka") {
        return [
          h("p", null, "The first line makes a topic with the Python that has the engine; any other way will do."),
          lacking(this.who, NEEDED, KAFKA_STREAM),
          copyable(kcat(asks, folder)),
        ];
      }
      return [h("p", null, NO_BROKER, h("code", null, "http://127.0.0.1:8081/"), "."), copyable(WITH_BROKER)];
    });
  }
}

function readsAll(who) {
  return may(who, "read:*") || may(who, "define:*");
}

/** A table as JSON and as Python, a line for each key. */
function written(table) {
  const lines = Object.entries(table).map(([key, value]) => `${JSON.stringify(key)}: ${spaced(value)}`);
  return `{\n    ${lines.join(",\n    ")}\n}`;
}

function spaced(value) {
  return JSON.stringify(value, null, 1).replace(/(?<=[[{])\s+|\s+(?=[\]}])/g, "").replace(/\s*\n\s*/g, " ");
}

function definition(name) {
  return {
    ...{ name, time: "ts", id: "tx_id", partitioners: ["card"] },
    fields: { tx_id: "string", ts: "timestamp", card: "string", amount: "double" },
  };
}

function query(stream) {
  return `SELECT count(*) AS n_7d, sum(amount) AS sum_7d FROM ${stream} GROUP BY card OVER SLIDING 7 DAYS`;
}

function event(number) {
  return { tx_id: `t${number}`, ts: 1700000000000 + 60_000 * number, card: "c1", amount: 12.5 };
}

/** Lines of a shell that register a stream and its metrics. */
function registered({ origin, hasToken }, stream) {
  return [
    `url=${quoted(origin)}`,
    "post() {",
    `  curl --silent --show-error "$url$1" -H 'Content-Type: application/json' \\`,
    hasToken && `    -H "Authorization: Bearer $RAILGUN_TOKEN" \\`,
    `    --data "$2" && echo`,
    "}",
    `post /v1/streams ${quoted(written(stream))}`,
    `post /v1/streams/${stream.name}/metrics \\`,
    `  ${quoted(spaced({ sql: query(stream.name) }))}`,
  ].filter(Boolean);
}

function curl(asks) {
  const sent = `post /v1/streams/${HTTP_STREAM}/events ${quoted(spaced(event(1)))}`;
  return [...registered(asks, definition(HTTP_STREAM)), sent].join("\n");
}

function python({ origin, hasToken }) {
  const given = [JSON.stringify(origin), hasToken && 'token=os.environ["RAILGUN_TOKEN"]'].filter(Boolean);
  return [
    ...(hasToken ? ["import os", ""] : []),
    "import railgun",
    "",
    `stream = ${written(definition(HTTP_STREAM))}`,
    `sql = ${JSON.stringify(query(HTTP_STREAM))}`,
    `event = ${spaced(event(2))}`,
    "",
    `with railgun.Client(${given.join(", ")}) as client:`,
    "    client.create_stream(stream)",
    `    client.add_metrics("${HTTP_STREAM}", sql)`,
    `    print(client.score("${HTTP_STREAM}", event))`,
  ].join("\n");
}

/**
 * A line that makes the topics: kcat makes none, and a broker that is set up well does not either. Nor does kcat read a
 * topic that a front-end has not made yet.
 */
function topicsMade(broker) {
  const program = [
    "from confluent_kafka.admin import AdminClient, NewTopic",
    `admin = AdminClient({"bootstrap.servers": ${JSON.stringify(broker)}})`,
    `made = admin.create_topics([NewTopic(name, 1) for name in ("${IN}", "${OUT}")])`,
    "[each.result() for each in made.values()]",
  ];
  return `python3 -c ${quoted(program.join("; "))}`;
}

function kcat(asks, broker) {
  const stream = { ...definition(KAFKA_STREAM), input: { topics: [IN] }, output: { topic: OUT } };
  return [
    topicsMade(broker),
    ...registered(asks, stream),
    `echo ${quoted(spaced(event(3)))} | kcat -P -b ${quoted(broker)} -t ${IN}`,
    `kcat -C -b ${quoted(broker)} -t ${OUT} -o beginning -c 1 -q`,
  ].join("\n");
}
