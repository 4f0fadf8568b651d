// Numbers, times and sizes as text.

const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];

/** 12345 is 12,345. */
export function number(value) {
  return value.toLocaleString("en");
}

/** "1 task", "2 tasks". */
export function counted(value, word, words = word + "s") {
  return `${number(value)} ${value === 1 ? word : words}`;
}

/** A text of at most so many characters, cut where it is longer. */
export function shortened(text, max) {
  return text.length > max ? `${text.slice(0, max - 1)}…` : text;
}

/** Three digits that count: 0.0123, 4.56, 12.3, 12,345. */
export function short(value) {
  const digits = value > 0 ? Math.min(Math.max(2 - Math.floor(Math.log10(value)), 0), 4) : 0;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** A share from 0 to 1 in whole percent; 100 % means all of it. */
export function share(value) {
  return `${Math.floor(100 * value)} %`;
}

/** A share in percent, with a tenth; one that is neither 0 nor 1 is not shown as such. */
export function percent(value) {
  const percent = 100 * value;
  const shown = value === 0 || value === 1 ? percent : Math.min(99.9, Math.max(0.1, percent));
  return `${shown.toFixed(Number.isInteger(shown) ? 0 : 1)} %`;
}

/** 1234567 bytes are 1.2 MB. */
export function bytes(value) {
  let shown = value;
  let unit = 0;
  while (shown >= 999.5 && unit < UNITS.length - 1) {
    shown /= 1000;
    unit += 1;
  }
  return `${unit && shown < 99.95 ? shown.toFixed(1) : Math.round(shown)} ${UNITS[unit]}`;
}

/** A duration in the largest unit that fits: 3 s, 12 min, 5 h, 9 d. */
export function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) {
    return `${seconds} s`;
  }
  if (seconds < 7_200) {
    return `${Math.floor(seconds / 60)} min`;
  }
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** A time in the viewer's zone and in UTC: `{local, utc, iso}`. Null if it is no time that a calendar has. */
export function time(ms) {
  const found = new Date(ms);
  if (Number.isNaN(found.getTime())) {
    return null;
  }
  const iso = found.toISOString();
  const shifted = new Date(ms - found.getTimezoneOffset() * 60_000);
  return { local: written(shifted.toISOString()), utc: `${written(iso)} UTC`, iso };
}

function written(iso) {
  return iso.replace("T", " ").replace(/\.\d+Z$/, "");
}
