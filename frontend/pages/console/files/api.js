// Asks the routes of this server, with the token of whoever looks.

const TOKEN = "railgun.token";
const PATIENCE_MS = 30_000;

/** A refusal by the server, as it says it. errors: a list of `{loc, msg}`. */
export class Problem extends Error {
  constructor(status, title, detail, errors = []) {
    super(detail);
    Object.assign(this, { status, title, detail, errors });
  }
}

/** The server did not answer. */
export class DisconnectedError extends Error {}

/** Tells of "refused", a token that is lacking or not good any more, with the server's words as `detail`. */
export const session = new EventTarget();

/** Tells of "change". sinceMs: the time from which on the server has not answered; null if it does. */
export const connection = Object.assign(new EventTarget(), { sinceMs: null });

/** Returns the token, which is kept for this tab alone; "" if there is none. */
export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

/** Keeps a token for this tab, or forgets it where it is "". */
export function setToken(text) {
  if (text) {
    sessionStorage.setItem(TOKEN, text);
  } else {
    sessionStorage.removeItem(TOKEN);
  }
}

/** Whether a text can be sent as a token. */
export function isToken(text) {
  return /^[\x21-\x7e]+$/.test(text);
}

/** Whether a caller has a scope. who: the answer of /v1/whoami. */
export function may(who, scope) {
  return who.scopes.includes("*") || who.scopes.includes(scope);
}

/** Whether a caller has a scope of a stream, perhaps as one of all streams, or as a part of another. */
export function mayWith(who, kind, stream) {
  const kinds = kind === "read" ? ["read", "define"] : [kind];
  return kinds.some((each) => may(who, `${each}:${stream}`) || may(who, `${each}:*`));
}

/** Whether a caller may read some stream, if there is one. */
export function mayReadSome(who) {
  return who.scopes.some((each) => each === "*" || /^(read|define):/.test(each));
}

/**
 * Returns the JSON that a route answers. Throws Problem and DisconnectedError; AbortError if `signal` ends it.
 *
 * body: a value; or `text`, its JSON.  read: reads the answer.
 */
export async function ask(path, { read = JSON.parse, ...options } = {}) {
  const { status, content } = await answered(path, options, (answer) => answer.text());
  return parsed(content, status, read);
}

/** Has the browser save the file that a route answers. Throws as `ask` does. */
export async function download(path) {
  const { content, headers } = await answered(path, {}, (answer) => answer.blob());
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = /filename="([^"]+)"/.exec(headers.get("Content-Disposition"))?.[1] ?? "railgun";
  link.click();
  // The browser reads it after this call.
  setTimeout(() => URL.revokeObjectURL(url), PATIENCE_MS);
}

/** Returns what a route answers. take: takes the content of a good answer. */
async function answered(path, { method = "GET", body, text, signal } = {}, take) {
  const sent = token();
  const headers = {};
  if (sent) {
    headers.Authorization = `Bearer ${sent}`;
  }
  const said = body === undefined ? text : JSON.stringify(body);
  if (said !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const ends = signal ? AbortSignal.any([signal, patience]) : patience;
  let status, content, title, answeredHeaders;
  try {
    const asked = { method, headers, body: said };
    const answer = await fetch(path, { ...asked, cache: "no-store", redirect: "error", signal: ends });
    status = answer.status;
    title = answer.statusText;
    answeredHeaders = answer.headers;
    content = await (answer.ok ? take(answer) : answer.text());
  } catch (error) {
    signal?.throwIfAborted();
    disconnected();
    throw new DisconnectedError("the server does not answer", { cause: error });
  }
  connected();
  if (status >= 200 && status < 300) {
    return { status, content, headers: answeredHeaders };
  }
  const problem = problemOf(status, title, content);
  if (status === 401 && sent === token()) {
    session.dispatchEvent(new CustomEvent("refused", { detail: sent ? problem.detail : "" }));
  }
  throw problem;
}

function parsed(text, status, read) {
  try {
    return text ? read(text) : null;
  } catch {
    throw new Problem(status, "No JSON", "the answer is no JSON: does something else than Railgun answer here?");
  }
}

function problemOf(status, title, text) {
  try {
    const said = JSON.parse(text);
    if (typeof said.detail === "string") {
      return new Problem(status, String(said.title), said.detail, Array.isArray(said.errors) ? said.errors : []);
    }
  } catch {
    // Something between the browser and the server has answered.
  }
  return new Problem(status, title || "Error", `the answer has the status ${status}, and is none of Railgun's`);
}

function disconnected() {
  if (connection.sinceMs === null) {
    connection.sinceMs = Date.now();
    connection.dispatchEvent(new Event("change"));
  }
}

function connected() {
  if (connection.sinceMs !== null) {
    connection.sinceMs = null;
    connection.dispatchEvent(new Event("change"));
  }
}
