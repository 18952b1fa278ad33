// Widths of cells that follow a distribution, for sums of numbers of any sign and for ratios. Any choice is valid.
//
// With the distance d from the median, the distance b of the quartiles and the mean excess e (on the left the mean shortfall),
// a cell has the width sqrt((d + b) e) times a fineness: the standard deviation in a normal distribution, and proportional
// to d in a heavy tail.

/** Groups of a picture: about this many equal parts of the atoms, and at most this share of the mass. */
const [PARTS, SHARE] = [20, 1 / 20];

/** Growth of the widths beyond the last atom, relative to the distance from it. */
const GROWTH = 0.3;

/** The most cells. */
const MOST_CELLS = 600;

/** The first and last atoms of about equal groups of neighbours. */
export function groups(masses) {
  const total = masses.reduce((sum, mass) => sum + mass, 0);
  const found = [];
  let [first, mass] = [0, 0];
  for (let k = 0; k < masses.length; k += 1) {
    mass += masses[k];
    const near = Math.min(k, masses.length - 1 - k); // smaller groups at both ends
    const size = Math.min(masses.length / PARTS, 1 + near / 3);
    if (k + 1 - first < size && mass < SHARE * total && k + 1 < masses.length) continue;
    found.push([first, k]);
    [first, mass] = [k + 1, 0];
  }
  return found;
}

/** Means and masses of groups of neighbours. */
export function picture(values, masses) {
  return groups(masses).flatMap(([first, last]) => {
    let [mass, moment] = [0, 0];
    for (let k = first; k <= last; k += 1) {
      mass += masses[k];
      moment += masses[k] * values[k];
    }
    return mass > 0 ? [{ x: moment / mass, p: mass }] : [];
  });
}

/**
 * The widths of cells at any place.
 *
 * @param atoms With `x` and `p`, rising.
 * @param least The smallest scale that matters.
 */
export function scales(atoms, least) {
  const n = atoms.length;
  const [below, above] = [new Float64Array(n), new Float64Array(n)]; // mean shortfalls and excesses
  let [mass, moment] = [0, 0];
  const upTo = atoms.map(({ x, p }, k) => {
    mass += p;
    moment += p * x;
    below[k] = x - moment / mass;
    return mass;
  });
  const total = mass;
  [mass, moment] = [0, 0];
  for (let k = n - 1; k >= 0; k -= 1) {
    mass += atoms[k].p;
    moment += atoms[k].p * atoms[k].x;
    above[k] = moment / mass - atoms[k].x;
  }
  const quantile = (share) => atoms[Math.min(Math.max(upTo.findIndex((sum) => sum >= share * total), 0), n - 1)].x;
  const middle = quantile(0.5);
  const body = Math.max(0.74 * (quantile(0.75) - quantile(0.25)), least);
  const places = atoms.map(({ x }) => x);
  const widths = atoms.map(({ x }, k) => {
    const distance = Math.abs(x - middle);
    const mean = Math.max(x < middle ? below[k] : above[k], 0.05 * body + 0.005 * distance);
    return Math.sqrt((distance + 1.5 * body) * Math.min(mean, distance + body));
  });
  for (let k = 1; k < n; k += 1) widths[k] = Math.min(widths[k], widths[k - 1] + places[k] - places[k - 1]);
  for (let k = n - 2; k >= 0; k -= 1) widths[k] = Math.min(widths[k], widths[k + 1] + places[k + 1] - places[k]);
  let k = 0;
  return (at) => {
    if (at <= places[0]) return widths[0] + GROWTH * (places[0] - at);
    if (at >= places[n - 1]) return widths[n - 1] + GROWTH * (at - places[n - 1]);
    while (places[k] > at) k -= 1;
    while (places[k + 1] <= at) k += 1;
    return widths[k] + ((at - places[k]) / (places[k + 1] - places[k])) * (widths[k + 1] - widths[k]);
  };
}

/** Edges from `start` to `end` or a little beyond; cells are wider if they are too many. */
export function edgesBetween(start, end, widthAt, fineness) {
  const edges = [start];
  for (let at = start; at < end; ) {
    at += Math.max(fineness * widthAt(at), 1e-13 * Math.abs(at));
    edges.push(at);
    if (edges.length > MOST_CELLS) return edgesBetween(start, end, widthAt, 1.5 * fineness);
  }
  return edges;
}
