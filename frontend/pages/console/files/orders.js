// Asks whether a node is to be emptied, or used again, and gives the order.

import { ask } from "./api.js";
import { h, update } from "./dom.js";
import { bytes, counted } from "./format.js";
import { problem } from "./parts.js";

const SAYS = {
  drain: {
    title: (node) => `Drain ${node}?`,
    text: "Its copies are made on other nodes, then it loses them. It goes on answering until others do.",
    button: "Drain",
    waits: "waiting until the leading node has decided",
  },
  undrain: {
    title: (node) => `Use ${node} again?`,
    text: "It gets copies of tasks again, as other nodes have.",
    button: "Undrain",
    waits: "waiting until the leading node has decided",
  },
};

/** Opens the dialog of an order, "drain" or "undrain". done: is called once the order was taken. */
export function openOrder(order, node, done) {
  const dialog = new Order(order, node, done);
  dialog.open();
}

class Order {
  #order;
  #node;
  #done;
  #dialog = h("dialog", { class: "order", "aria-labelledby": "order" });
  #foreseen = { askedMs: Date.now() };
  #sentMs = null;
  #refused = null;

  constructor(order, node, done) {
    this.#order = order;
    this.#node = node;
    this.#done = done;
  }

  open() {
    document.body.append(this.#dialog);
    this.#dialog.addEventListener("close", () => this.#dialog.remove());
    this.#dialog.addEventListener("click", (event) => {
      const action = event.target.closest("button")?.dataset.action;
      if (action === "cancel") {
        this.#dialog.close();
      } else if (action === "order") {
        this.#send();
      }
    });
    this.#draw();
    this.#dialog.showModal();
    if (this.#order === "drain") {
      this.#foresee();
    }
  }

  #draw() {
    const { title, text, button, waits } = SAYS[this.#order];
    const isSent = this.#sentMs !== null;
    update(this.#dialog, [
      h("h2", { id: "order" }, title(this.#node)),
      h("p", null, text),
      ...(this.#order === "drain" ? this.#consequences() : []),
      this.#refused && problem(this.#refused, "this order"),
      h(
        "div",
        { class: "buttons", "data-key": "buttons" },
        isSent && h("console-wait", { at: this.#sentMs, what: waits }),
        h("button", { type: "button", "data-action": "cancel", autofocus: true }, "Cancel"),
        h(
          "button",
          { type: "button", "data-action": "order", class: "main", disabled: isSent },
          `${button} ${this.#node}`,
        ),
      ),
    ]);
  }

  #consequences() {
    const { askedMs, found, error } = this.#foreseen;
    return [
      h(
        "div",
        { class: "consequences", "data-key": "consequences" },
        !found && !error && h("console-wait", { at: askedMs, what: "looking what would move" }),
        error && h("p", { class: "quiet" }, `What would move is not known: ${error.message}`),
        found && [consequences(found), h("console-age", { at: askedMs })],
      ),
      h(
        "label",
        { class: "check" },
        h("input", { type: "checkbox", id: "fewer" }),
        "Let tasks have fewer copies where too few nodes are left",
      ),
    ];
  }

  /** Asks what would move. */
  async #foresee() {
    try {
      const found = await ask(`/v1/cluster/plan?what_if=${encodeURIComponent(`remove=${this.#node}`)}`);
      this.#foreseen = { found, askedMs: Date.now() };
    } catch (error) {
      this.#foreseen = { error };
    }
    this.#draw();
  }

  async #send() {
    const fewer = this.#dialog.querySelector("#fewer")?.checked;
    this.#sentMs = Date.now();
    this.#refused = null;
    this.#draw();
    try {
      const path = `/v1/cluster/nodes/${encodeURIComponent(this.#node)}/${this.#order}`;
      await ask(path, { method: "POST", body: this.#order === "drain" ? { fewer_copies: fewer } : undefined });
      this.#dialog.close();
      this.#done();
    } catch (error) {
      this.#refused = error.status ? error : { ...NO_ANSWER };
    }
    this.#sentMs = null;
    this.#draw();
  }
}

const NO_ANSWER = {
  status: 0,
  title: "No answer",
  detail: "the server has not answered; the order may stand: look at the node's state",
  errors: [],
};

function consequences({ moves, made, bytes: size, not_made }) {
  const lacks = not_made.slice(0, 5);
  return h(
    "ul",
    null,
    h("li", null, `${counted(moves, "task")} would be answered by another copy`),
    h("li", null, `${counted(made.length, "copy", "copies")} would be made on other nodes, about ${bytes(size)}`),
    lacks.map((each) => h("li", { class: "bad" }, each)),
    not_made.length > lacks.length && h("li", null, `and ${not_made.length - lacks.length} more`),
  );
}
