// The frame of all pages: navigation by the address's fragment, the token, and whether the server answers.

import { DisconnectedError, ask, connection, isToken, session, setToken, token } from "./api.js";
import { h, update, visible } from "./dom.js";
import { shortened } from "./format.js";
import { near } from "./near.js";
import { problem, sentence, when } from "./parts.js";
import "./changes.js";
import "./cluster.js";
import "./dead.js";
import "./live.js";
import "./lookup.js";
import "./overview.js";
import "./stream.js";
import "./streams.js";

const AGAIN_MS = 2_000;
// one: the element for what is named behind the page's name.
const PAGES = {
  overview: { title: "Overview", element: "page-overview" },
  streams: { title: "Streams", element: "page-streams", one: "page-stream" },
  live: { title: "Live", element: "page-live" },
  lookup: { title: "Look up", element: "page-lookup" },
  dead: { title: "Dead letters", element: "page-dead" },
  cluster: { title: "Cluster", element: "page-cluster" },
  changes: { title: "Changes", element: "page-changes" },
};
const FIRST = "overview";
const NO_PAGE = "There is no such page";
const NAME_MAX = 100;

class Shell extends HTMLElement {
  #who = null;
  #refused = null;
  #problem = null;
  #askedMs = null;
  #timer = null;

  connectedCallback() {
    this.append(
      h("a", { class: "skip", href: "#main" }, "Skip to the page"),
      h("nav", { class: "bar", "aria-label": "Pages" }),
      h("div", { class: "banner", role: "region", "aria-label": "Connection" }, h("strong", { role: "status" })),
      h("main", { id: "main", tabindex: -1 }),
    );
    this.querySelector(".skip").addEventListener("click", (event) => {
      // The fragment names the page, so the address is left alone.
      event.preventDefault();
      this.#main.focus();
    });
    this.addEventListener("click", (event) => this.#clicked(event));
    this.addEventListener("submit", (event) => this.#submitted(event));
    addEventListener("hashchange", () => this.#show(true));
    connection.addEventListener("change", () => this.#drawBanner());
    session.addEventListener("refused", (event) => this.#askForToken(event.detail));
    this.#identify();
  }

  get #main() {
    return this.querySelector("main");
  }

  /** Asks who looks, until the server answers; then shows the page. */
  async #identify() {
    clearTimeout(this.#timer);
    this.#askedMs = Date.now();
    this.#drawStart();
    try {
      this.#who = await ask("/v1/whoami");
      this.#askedMs = this.#refused = this.#problem = null;
      this.#show(false);
    } catch (error) {
      this.#askedMs = null;
      const isRefused = error.status === 401;
      this.#problem = isRefused || error instanceof DisconnectedError ? null : error;
      this.#drawStart();
      if (!isRefused) {
        this.#timer = setTimeout(() => this.#identify(), AGAIN_MS);
      }
    }
  }

  /** Shows what there is before it is known who looks: the form, or why the server does not say that. */
  #drawStart() {
    this.#drawBar();
    update(this.#main, [
      this.#refused !== null && this.#form(),
      this.#problem !== null && problem(this.#problem, "anything"),
      this.#askedMs !== null && h("console-wait", { at: this.#askedMs }),
    ]);
  }

  /** Shows the form for a token. refused: what the server said of the token that was sent; "" if none was. */
  #askForToken(refused) {
    closeDialogs();
    this.#who = null;
    this.#refused = refused;
    setToken("");
    this.#drawStart();
    this.#main.querySelector("input").focus();
  }

  #form() {
    return h(
      "form",
      { class: "token", "data-key": "token" },
      h("h1", null, "A token is needed"),
      h(
        "p",
        null,
        "This server shows things to those who have a token. It is kept for this tab alone, until the tab is closed.",
      ),
      h("label", { for: "token" }, "Token"),
      h("input", {
        ...{ id: "token", name: "token", type: "password", required: true, spellcheck: "false" },
        ...{ autocomplete: "off", "aria-describedby": "refused" },
      }),
      h("p", { id: "refused", class: "refused", role: "alert" }, this.#refused ? sentence(this.#refused) : ""),
      h("button", { type: "submit", class: "main" }, "Use this token"),
    );
  }

  #submitted(event) {
    if (!event.target.matches("form.token")) {
      return;
    }
    event.preventDefault();
    const given = event.target.elements.token.value.trim();
    if (!isToken(given)) {
      this.#askForToken("this is no token: a token is one word of letters, digits and signs");
      return;
    }
    setToken(given);
    this.#identify();
  }

  #clicked(event) {
    if (event.target.closest("[data-action=forget]")) {
      setToken("");
      // Whatever is shown was for whom that token is.
      this.#who = null;
      this.#identify();
    }
  }

  /** Shows the page that the address names. moves: whether somebody has gone there, so that the focus follows. */
  #show(moves) {
    if (this.#who === null) {
      return;
    }
    closeDialogs();
    const [name, rest] = this.#place();
    const known = Object.hasOwn(PAGES, name) ? PAGES[name] : null;
    document.title = `${visible(known === null ? NO_PAGE : (rest[0] ?? known.title))} · Railgun`;
    this.#drawBar();
    this.#main.replaceChildren(...(known === null ? noPage(name) : [this.#page(known, rest)]));
    if (moves) {
      scrollTo(0, 0);
      (this.#main.querySelector("h1") ?? this.#main).focus();
    }
  }

  #page({ element, one }, rest) {
    const page = document.createElement(one && rest.length ? one : element);
    return Object.assign(page, { who: this.#who, rest });
  }

  /** The name in the address of a page, which there may not be, and what follows it. */
  #place() {
    const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
    return name === "" ? [FIRST, []] : [name, rest.filter(Boolean)];
  }

  #drawBar() {
    const [current] = this.#place();
    update(this.querySelector("nav"), [
      h("a", { class: "brand", href: `#/${FIRST}` }, "Railgun"),
      h(
        "ul",
        null,
        Object.entries(PAGES).map(([name, { title }]) =>
          h("li", null, h("a", { href: `#/${name}`, "aria-current": name === current && "page" }, title)),
        ),
        h("li", null, h("a", { href: "/docs" }, "Routes")),
      ),
      this.#identity(),
    ]);
  }

  #identity() {
    if (this.#who === null) {
      return h("div", { class: "who" });
    }
    const { name, expires } = this.#who;
    if (name === null) {
      return h("div", { class: "who" }, h("span", null, "no token needed"), token() && this.#forget());
    }
    const ends = expires !== null && [" until ", when(Date.parse(expires))];
    return h(
      "div",
      { class: "who" },
      h("span", null, "token ", h("b", null, name), ends),
      this.#forget(),
    );
  }

  #forget() {
    return h("button", { type: "button", "data-action": "forget" }, "Forget token");
  }

  #drawBanner() {
    const { sinceMs } = connection;
    const isGone = sinceMs !== null;
    update(this.querySelector(".banner"), [
      h("strong", { role: "status" }, isGone && "disconnected"),
      isGone && h("console-gone", { at: sinceMs }),
    ]);
    this.classList.toggle("disconnected", isGone);
  }
}

/** What stands in place of a page that there is not. */
function noPage(name) {
  const [meant = FIRST] = near(name, Object.keys(PAGES));
  return [
    h("h1", { tabindex: -1 }, NO_PAGE),
    h(
      "p",
      { class: "note" },
      "The console has no page ",
      h("code", null, shortened(name, NAME_MAX)),
      ". Go to ",
      h("a", { href: `#/${meant}` }, PAGES[meant].title),
      ", or to one of those above.",
    ),
  ];
}

function closeDialogs() {
  document.querySelectorAll("dialog").forEach((each) => each.close());
}

/** Undoes the coding of a part of an address; what is coded wrongly stays as it is. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

customElements.define("console-shell", Shell);
