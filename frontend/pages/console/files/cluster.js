// Nodes, the copies of each task, and orders to empty a node or to use it again.

import { may } from "./api.js";
import { Copies, nameOf, stateOf } from "./copies.js";
import { h } from "./dom.js";
import { bytes, counted, number, shortened } from "./format.js";
import { lately } from "./lately.js";
import { openOrder } from "./orders.js";
import { Page } from "./page.js";
import { bar, figures, linked, sentence, shown, table, told, when } from "./parts.js";

const EVERY_MS = 5_000;
// As long as in warnings.
const ERROR_MAX = 200;
const NODES = [
  ...[["Node", "name"], ["State"], ["Answers", "number"], ["Copies", "number"]],
  ...[["Behind", "number"], ["Records behind", "number"], ["Failed", "number"], ["Order"]],
  ...[["Units", "number"], ["Rack", "name"], ["Host", "name"], ["Release", "name"]],
];
const MOVING = [
  ...[["Task", "name"], ["Copy", "name"], ["State"]],
  ...[["How far"], ["From", "name"], ["Error", "long"]],
];

class Cluster extends Page {
  begin() {
    this.cluster = this.poll("/v1/cluster", EVERY_MS);
    // The address may name a task that is looked for.
    const [wanted = ""] = this.rest;
    this.copies = new Copies(wanted);
    this.wanted = wanted;
    this.addEventListener("input", () => {
      this.copies.text = this.querySelector("#find").value;
      this.copies.onlyTrouble = this.querySelector("#trouble").checked;
      this.draw();
    });
    this.addEventListener("click", (event) => {
      const { action, node } = event.target.closest("button")?.dataset ?? {};
      if (action === "drain" || action === "undrain") {
        openOrder(action, node, () => this.cluster.now());
      }
    });
  }

  draw() {
    super.draw();
    const find = this.wanted && this.querySelector("#find");
    if (find) {
      this.wanted = "";
      find.focus();
      find.scrollIntoView();
    }
  }

  content() {
    return [
      this.head("Cluster", this.cluster),
      ...shown(this.cluster, "the cluster", (cluster) => [
        this.#warnings(cluster),
        figures(numbers(cluster)),
        section("nodes", "Nodes", this.#nodes(cluster)),
        moving(cluster),
        // An older front-end notes nothing.
        cluster.lately && section("lately", "Lately", lately(cluster.lately)),
        section("tasks", "Tasks", this.copies.content(cluster)),
      ]),
    ];
  }

  #warnings({ warnings }) {
    return (
      warnings.length > 0 &&
      h(
        "div",
        { class: "problem", role: "alert", "data-key": "warnings" },
        h("ul", null, warnings.map((each) => h("li", null, told(each)))),
      )
    );
  }

  #nodes(cluster) {
    if (!cluster.nodes.length) {
      return h("p", { class: "note" }, "There is no node. ", h("code", null, "railgun node"), " starts one.");
    }
    const mayOrder = may(this.who, "operate");
    const copies = copiesByNode(cluster);
    const rows = cluster.nodes.map((node) => [node.name, nodeRow(node, copies.get(node.name) ?? [], mayOrder)]);
    const lacks = ["To drain and undrain nodes a token needs the scope ", h("code", null, "operate"), "."];
    return [table("Nodes", NODES, rows), !mayOrder && h("p", { class: "quiet" }, lacks)];
  }
}

function section(key, title, ...content) {
  return h("section", { "data-key": key }, h("h2", null, title), content);
}

function numbers(cluster) {
  const states = cluster.tasks.flatMap((task) => task.copies.map(stateOf));
  const answered = cluster.tasks.filter((task) => task.copies.some((copy) => copy.state === "answering")).length;
  const unanswered = cluster.tasks.length - answered;
  const failed = states.filter((each) => each === "failed").length;
  return [
    ["Leader", cluster.leader ?? "none", cluster.leader === null && "bad"],
    ["Tasks", number(cluster.tasks.length)],
    ["Nobody answers", number(unanswered), unanswered > 0 && "bad"],
    ["Copies wanted of each task", number(cluster.copies)],
    ["Copies behind", number(cluster.behind), cluster.behind > 0 && "off"],
    ["Copies failed", number(failed), failed > 0 && "bad"],
    ["No report", number(cluster.unheard), cluster.unheard > 0 && "off"],
    ["Moves left", number(cluster.moves)],
    ["Plan", number(cluster.plan)],
  ];
}

/** The copies by node, each with the name of its task. */
function copiesByNode({ tasks }) {
  const found = new Map();
  for (const task of tasks) {
    for (const copy of task.copies) {
      if (!found.has(copy.node)) {
        found.set(copy.node, []);
      }
      found.get(copy.node).push({ ...copy, task: nameOf(task) });
    }
  }
  return found;
}

function nodeRow(node, copies, mayOrder) {
  const behind = copies.filter((copy) => copy.state === "behind");
  const lag = Math.max(0, ...behind.map((copy) => copy.lag ?? 0));
  const failed = copies.filter((copy) => copy.state === "failed");
  const unheard = copies.filter((copy) => copy.state === null);
  const isUnheard = unheard.length > 0 && unheard.length === copies.length;
  const isEmptied = node.state === "draining" || node.state === "drained";
  const order = isEmptied ? "undrain" : "drain";
  return [
    h("code", null, node.name),
    [
      state(node, failed.length > 0 || unheard.length > 0),
      failed.length > 0 && h("p", { class: "remark bad" }, failures(failed)),
      ...(node.ended ?? []).map((each) => h("p", { class: "remark bad" }, sentence(each.text), " (", when(each.last_ms), ")")),
      node.heard_ms && h("p", { class: "remark" }, "Last heard ", when(node.heard_ms)),
      ...remarks(node).map((each) => h("p", { class: "remark" }, each)),
    ],
    number(node.active),
    number(node.copies),
    h("span", { class: behind.length + unheard.length > 0 && "off" }, howMany(behind.length, unheard.length)),
    h("span", { class: (lag > 0 || isUnheard) && "off" }, isUnheard ? "not known" : number(lag)),
    h("span", { class: failed.length > 0 && "bad" }, number(failed.length)),
    mayOrder &&
      h(
        "button",
        { type: "button", "data-action": order, "data-node": node.name, "aria-label": `${order} ${node.name}` },
        isEmptied ? "Undrain …" : "Drain …",
      ),
    number(node.units),
    node.rack,
    node.host,
    node.release,
  ];
}

/** How many copies are behind, and of how many that is not known. */
function howMany(behind, unheard) {
  const unknown = unheard > 0 && `${number(unheard)} ${unheard === 1 ? "does" : "do"} not report`;
  return [(behind > 0 || !unknown) && number(behind), unknown].filter(Boolean).join("; ");
}

/** isUnwell: whether copies of it have failed, or do not report. */
function state({ state: said, alive, lost, units_go_on: goesOn, ended = [] }, isUnwell) {
  const live = ended.length || lost || isUnwell ? "off" : "good";
  const kind = { live, away: goesOn ? "off" : "bad", draining: "off" }[said] ?? "";
  const isAway = !alive && said !== "away";
  return h("span", { class: `state ${kind}` }, said, isAway && ", away");
}

/** Which copies of a node have failed, and why the first has. */
function failures([first, ...others]) {
  const more = others.length ? ` and ${counted(others.length, "more copy", "more copies")}` : "";
  const why = first.failure ?? "its node's log says why";
  return [linked(first.task), `${more} failed: ${shortened(why, ERROR_MAX)}`];
}

function remarks({ refused, lost, waits, units_go_on: goesOn }) {
  return [
    goesOn && "It is not in the group of nodes, and its units go on: its log says why",
    refused && `The last order to drain it was refused: ${refused}`,
    lost && `${counted(lost, "task gets", "tasks get")} no copy here until it is started again`,
    ...(waits ?? []),
  ].filter(Boolean);
}

/** The copies that fetch their data, or that failed, with why. */
function moving({ tasks }) {
  const found = tasks.flatMap((task) =>
    task.copies.filter((copy) => copy.fetching || copy.state === "failed").map((copy) => [task, copy]),
  );
  if (!found.length) {
    return false;
  }
  found.sort(([, one], [, other]) => (other.state === "failed") - (one.state === "failed"));
  const rows = found.map(([task, copy]) => [`${nameOf(task)} ${copy.node}/${copy.unit}`, movingRow(task, copy)]);
  const title = "Copies that failed or fetch their data";
  return section("moving", title, table(title, MOVING, rows));
}

function movingRow(task, copy) {
  return [
    h("code", null, nameOf(task)),
    h("code", null, `${copy.node}/${copy.unit}`),
    h("span", { class: `state ${copy.state === "failed" ? "bad" : "off"}` }, stateOf(copy)),
    copy.fetching && progress(copy.fetching),
    copy.fetching?.donor && h("code", null, copy.fetching.donor),
    copy.failure && h("span", { class: "error" }, copy.failure),
  ];
}

function progress({ donor, fetched_bytes, total_bytes, hashed_bytes }) {
  if (donor === null) {
    return "waits for its turn";
  }
  if (!total_bytes) {
    return hashed_bytes ? `${bytes(hashed_bytes)} hashed` : "begins";
  }
  return bar(fetched_bytes, total_bytes, `${bytes(fetched_bytes)} of ${bytes(total_bytes)}`);
}

customElements.define("page-cluster", Cluster);
