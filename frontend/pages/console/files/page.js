// What all pages are: an element that asks while it is shown, and shows what it knows.

import { h, update } from "./dom.js";
import { standing } from "./parts.js";
import { Poll } from "./poll.js";

const UNSHOWN =
  "An answer cannot be shown, so what stands here is as it was. Where a new release is being rolled out, load the page " +
  "again once that is done; the browser's console says what went wrong.";

/**
 * A page. who: the answer of /v1/whoami.  rest: what follows the page's name in the address.
 *
 * A page overrides `begin`, which makes its polls, and `content`, which makes its elements anew from what these know.
 */
export class Page extends HTMLElement {
  #polls = [];

  connectedCallback() {
    this.begin();
    this.redraw();
    this.#polls.forEach((each) => each.start());
  }

  disconnectedCallback() {
    this.#polls.forEach((each) => each.stop());
  }

  /** Makes a poll that runs while the page is shown. asked: more for `ask`. */
  poll(path, everyMs, asked) {
    const made = new Poll(path, everyMs, () => this.redraw(), asked);
    this.#polls.push(made);
    return made;
  }

  begin() {}

  draw() {
    update(this, this.content());
  }

  /** Draws what is known now. Where that fails, what is shown stays, and the page says so until it can draw again. */
  redraw() {
    if (!this.isConnected) {
      return;
    }
    try {
      this.draw();
    } catch (error) {
      console.error(error);
      if (this.querySelector(":scope > [data-key=unshown]") === null) {
        this.prepend(h("p", { class: "problem", role: "alert", "data-key": "unshown" }, UNSHOWN));
      }
    }
  }

  /** The head of the page, with the age of what a poll knows. */
  head(title, poll) {
    return h("header", { class: "head" }, h("h1", { tabindex: -1 }, title), standing(poll));
  }
}
