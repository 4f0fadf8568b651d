// The grid of tasks and nodes, coloured by which copy answers and how far the others are behind.

import { h } from "./dom.js";
import { number } from "./format.js";

const ROWS_MAX = 300;
const FAR = 10_000;
const LEGEND = [
  ["answering", "it answers"],
  ["silent", "it has caught up, and another one answers"],
  ["behind", `it lacks records of its log, as many as are said; darker from ${number(FAR)} on`],
  ["fetching", "its data comes from another node"],
  ["failed", "it stopped; the reason stands above"],
  ["closed", "its unit does not have it open"],
  ["unknown", "it does not report"],
];
const WELL = new Set(["answering", "silent"]);

/** The state of a copy: one of `LEGEND`, or one that another release has. */
export function stateOf(copy) {
  if (copy.fetching) {
    return "fetching";
  }
  return copy.state ?? "unknown";
}

/** The name of a task, as `railgun cluster` has it. */
export function nameOf({ stream, partitioner, partition }) {
  return `${stream}/${partitioner}/${partition}`;
}

function colour(state) {
  return LEGEND.some(([known]) => known === state) ? state : "unknown";
}

/** The grid, narrowed by what somebody looks for. text: a part of a task's name, which is looked for at first. */
export class Copies {
  onlyTrouble = false;
  #first;

  constructor(text) {
    this.text = this.#first = text;
  }

  content({ tasks, nodes }) {
    if (!tasks.length) {
      return h("p", { class: "note" }, "There is no task: streams make them.");
    }
    const found = tasks.filter((task) => this.#isWanted(task));
    const names = columns(nodes, tasks);
    return [
      h(
        "div",
        { class: "find" },
        h("label", { for: "find" }, "Find"),
        h("input", {
          ...{ id: "find", type: "search", value: this.#first },
          ...{ placeholder: "a part of a task's name", autocomplete: "off" },
        }),
        h("label", { class: "check" }, h("input", { id: "trouble", type: "checkbox" }), "only with something wrong"),
        h("span", { class: "quiet", role: "status" }, `${number(found.length)} of ${number(tasks.length)}`),
      ),
      h("div", { class: "scroll", role: "region", "aria-label": "Copies of tasks", tabindex: 0 }, grid(found, names)),
      found.length > ROWS_MAX && h("p", { class: "quiet" }, `The first ${ROWS_MAX} are shown; find others by name.`),
      h(
        "ul",
        { class: "legend" },
        LEGEND.map(([state, says]) => h("li", null, h("span", { class: `copy ${state}` }, word(state)), says)),
      ),
    ];
  }

  #isWanted(task) {
    if (!nameOf(task).toLowerCase().includes(this.text.trim().toLowerCase())) {
      return false;
    }
    return !this.onlyTrouble || !isWell(task);
  }
}

function isWell({ copies, wrong = [] }) {
  if (wrong.length) {
    return false;
  }
  const planned = copies.filter((copy) => copy.planned);
  return copies.some((copy) => copy.state === "answering") && planned.every((copy) => WELL.has(stateOf(copy)));
}

/** The names of nodes, those that only copies name too. */
function columns(nodes, tasks) {
  const named = tasks.flatMap((task) => task.copies.map((copy) => copy.node));
  return [...new Set([...nodes.map((node) => node.name), ...named])];
}

function grid(tasks, names) {
  return h(
    "table",
    { class: "grid" },
    h(
      "thead",
      null,
      h("tr", null, ["Task", ...names].map((name) => h("th", { scope: "col", class: "name" }, name))),
    ),
    h(
      "tbody",
      null,
      tasks.slice(0, ROWS_MAX).map((task) => {
        const name = nameOf(task);
        return h(
          "tr",
          { "data-key": name },
          h("th", { scope: "row", class: "name" }, h("code", null, name), (task.wrong ?? []).map(remark)),
          names.map((node) => h("td", null, task.copies.filter((copy) => copy.node === node).map(cell))),
        );
      }),
    ),
  );
}

function remark(text) {
  return h("p", { class: "remark" }, text);
}

function cell(copy) {
  const state = stateOf(copy);
  const isFar = state === "behind" && copy.lag >= FAR;
  return h(
    "div",
    { class: `copy ${colour(state)}${isFar ? " far" : ""}${copy.planned ? "" : " leaving"}` },
    h("span", null, said(copy, state)),
    h("small", null, `unit ${copy.unit}${copy.planned ? "" : ", to go"}`),
  );
}

function said(copy, state) {
  if (state === "behind") {
    return copy.lag === null ? "behind" : `behind by ${number(copy.lag)}`;
  }
  if (state !== "fetching") {
    return word(state);
  }
  const { donor, fetched_bytes, total_bytes } = copy.fetching;
  if (donor === null) {
    return "waits to fetch";
  }
  return total_bytes ? `fetching ${Math.floor((100 * fetched_bytes) / total_bytes)} %` : "fetching";
}

function word(state) {
  return state === "unknown" ? "no report" : state;
}
