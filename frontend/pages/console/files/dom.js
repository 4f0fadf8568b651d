// Makes elements, and brings what is shown up to date. Text becomes text nodes alone, never HTML.

const SVG = "http://www.w3.org/2000/svg";
const TEXT_MAX = 20_000;
// Characters that are not seen, or that turn the direction of others: controls, soft hyphens, marks and overrides of
// direction, widths of zero. A line break and a tab are kept.
const UNSEEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]",
  "g",
);

/** Returns a text in which nothing is unseen: U+202E stands as \u202e. */
export function seen(text) {
  return text.replace(UNSEEN, (each) => "\\u" + each.charCodeAt(0).toString(16).padStart(4, "0"));
}

/** Returns a text in which nothing is unseen. One that is too long is cut, and says so. */
export function visible(text) {
  const shown = text.length > TEXT_MAX ? text.slice(0, TEXT_MAX) : text;
  const left = text.length - shown.length;
  return left ? `${seen(shown)} … and ${left.toLocaleString("en")} characters more` : seen(shown);
}

/** Makes an element of HTML. A child is an element, a text, or a list of these; null and false are left out. */
export function h(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Makes an element of SVG, as `h` does one of HTML. */
export function s(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) {
      const text = value === true ? "" : String(value);
      element.setAttribute(name, name === "aria-label" ? visible(text) : text);
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : visible(String(child)));
    }
  }
  return element;
}

/**
 * Brings the children of an element up to date with elements that were made anew. Those that are there already stay,
 * so that focus, selection and what somebody has opened or typed stay too. A child with `data-key` is found by that;
 * no two children have the same one.
 */
export function update(parent, fresh) {
  const made = fresh.flat(Infinity).filter((each) => each instanceof Node);
  const wanted = new Set(made.map(keyOf));
  const known = new Map();
  for (const child of [...parent.childNodes]) {
    const key = keyOf(child);
    if (key !== undefined && !wanted.has(key)) {
      child.remove();
    } else if (key !== undefined) {
      known.set(key, child);
    }
  }
  let place = parent.firstChild;
  for (const each of made) {
    const old = keyOf(each) === undefined ? place : known.get(keyOf(each));
    if (!old || !isAlike(old, each)) {
      parent.insertBefore(each, place);
    } else if (old === place) {
      place = place.nextSibling;
      refresh(old, each);
    } else {
      parent.insertBefore(old, place);
      refresh(old, each);
    }
  }
  while (place !== null) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function keyOf(node) {
  return node.dataset?.key;
}

function isAlike(old, made) {
  return old.nodeName === made.nodeName && keyOf(old) === keyOf(made);
}

function refresh(old, made) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) {
      old.data = made.data;
    }
    return;
  }
  for (const { name } of [...old.attributes]) {
    // What somebody has opened stays open.
    if (!made.hasAttribute(name) && name !== "open") {
      old.removeAttribute(name);
    }
  }
  for (const { name, value } of made.attributes) {
    if (old.getAttribute(name) !== value) {
      old.setAttribute(name, value);
    }
  }
  // An element of our own makes its children itself.
  if (!old.nodeName.includes("-")) {
    update(old, [...made.childNodes]);
  }
}
