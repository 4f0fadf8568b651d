// Names that somebody may have meant.

const NAMES_MAX = 3;

/** Of some names, those that are nearest to another one, which differ from it by a third of its letters at most. */
export function near(wanted, names) {
  const [sought, most] = [wanted.toLowerCase(), Math.ceil(wanted.length / 3)];
  return names
    .filter((name) => Math.abs(name.length - wanted.length) <= most)
    .map((name) => [distance(sought, name.toLowerCase()), name])
    .filter(([far]) => far <= most)
    .toSorted(([one], [other]) => one - other)
    .slice(0, NAMES_MAX)
    .map(([, name]) => name);
}

/** How many letters are to be put in, left out or changed to make one text of the other. */
function distance(one, other) {
  let before = [...Array(other.length + 1).keys()];
  for (let i = 0; i < one.length; i += 1) {
    const row = [i + 1];
    for (let j = 0; j < other.length; j += 1) {
      row.push(Math.min(before[j + 1] + 1, row[j] + 1, before[j] + (one[i] === other[j] ? 0 : 1)));
    }
    before = row;
  }
  return before.at(-1);
}
