// Asks a route again and again, while somebody looks.

import { DisconnectedError, ask } from "./api.js";

const PATIENCE_MS = 1_000;
const AGAIN_MS = 1_000;
const AGAIN_MAX_MS = 5_000;
// After these, what was shown before is not to be shown any more.
const NOT_SHOWN = new Set([401, 403, 404, 409]);

/**
 * What a route answered last.
 *
 * data: the answer; undefined before the first one.  atMs: when it came.  problem: what the server said last, if it
 * refused.  sinceMs: when the request that is under way was sent, if it takes longer than a second; else null.
 */
export class Poll {
  #path;
  #asked;
  #everyMs;
  #changed;
  #ends = null;
  #wake = () => {};
  #isWanted = false;
  #failures = 0;

  /** changed: is called at each change of what is known.  asked: more for `ask`. */
  constructor(path, everyMs, changed, asked = {}) {
    this.#path = path;
    this.#asked = asked;
    this.#everyMs = everyMs;
    this.#changed = changed;
    this.data = undefined;
    this.atMs = null;
    this.problem = null;
    this.sinceMs = null;
  }

  /** Asks for another path from the next time on. */
  set path(path) {
    this.#path = path;
  }

  start() {
    this.#ends = new AbortController();
    this.#run(this.#ends.signal);
  }

  stop() {
    this.#ends?.abort();
    this.#wake();
  }

  /** Asks at once; while a request is under way, or its answer is taken, once that is done. */
  now() {
    this.#isWanted = true;
    this.#wake();
  }

  async #run(signal) {
    while (!signal.aborted) {
      this.#isWanted = false;
      if (!document.hidden) {
        await this.#once(signal);
        if (signal.aborted) {
          return;
        }
        this.#tell();
      }
      await (signal.aborted || this.#isWanted || this.#wait());
    }
  }

  /** Tells of a change. What goes wrong there does not end the asking. */
  #tell() {
    try {
      this.#changed();
    } catch (error) {
      console.error(error);
    }
  }

  async #once(signal) {
    const begunMs = Date.now();
    const late = setTimeout(() => {
      this.sinceMs = begunMs;
      this.#tell();
    }, PATIENCE_MS);
    try {
      this.data = await ask(this.#path, { ...this.#asked, signal });
      this.atMs = Date.now();
      this.problem = null;
      this.#failures = 0;
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      if (error instanceof DisconnectedError) {
        this.#failures += 1;
        return;
      }
      this.#failures = 0;
      this.problem = error;
      if (NOT_SHOWN.has(error.status)) {
        this.data = undefined;
      }
    } finally {
      clearTimeout(late);
      this.sinceMs = null;
    }
  }

  /** Waits for the next turn. A tab that comes to the front has it at once. */
  #wait() {
    const again = Math.min(AGAIN_MS * this.#failures, AGAIN_MAX_MS);
    return new Promise((done) => {
      const timer = setTimeout(finish, this.#failures ? again : this.#everyMs);
      document.addEventListener("visibilitychange", finish);
      this.#wake = finish;
      function finish() {
        clearTimeout(timer);
        document.removeEventListener("visibilitychange", finish);
        done();
      }
    });
  }
}
