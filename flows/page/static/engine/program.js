// The ratio of a run as a list of operations on independent ratios; each operation names earlier ones by their index.
//
// `step` is the ratio of one step, `given` one with a distribution of its own, `sum` a weighted mean of two ratios, `mixed` the ratio 1 - rate + rate X, and `product`
// a composition. `copies` is the number of steps in the result. The last operation gives the ratio of the run.

/** sqrt(scale) / sigma of a part. */
export const inverse = ({ sigma, scale }) => Math.sqrt(scale) / sigma;

/** The operations of a run. */
export function program(parts) {
  const nodes = [];
  const add = (node) => nodes.push(node) - 1;
  let [found, count] = [null, 0];
  for (const part of parts) {
    const sum = (a, m, b, n) => add({ kind: "sum", a, b, shares: [m / (m + n), n / (m + n)], copies: m + n });
    const product = (a, m, b, n) => add({ kind: "product", a, b, copies: (m + n) * part.mean });
    let x;
    if (part.given) x = add({ kind: "given", given: part.given, copies: part.mean });
    else x = powered(add({ kind: "step", s: inverse(part), copies: 1 }), part.mean, sum);
    if (part.rate < 1 && !part.given) x = add({ kind: "mixed", a: x, rate: part.rate, copies: part.mean });
    x = powered(x, part.times, product);
    count += part.mean * part.times;
    found = found === null ? x : add({ kind: "product", a: found, b: x, copies: count });
  }
  return nodes;
}

/** A power by repeated doubling. */
function powered(x, times, combine) {
  let [found, copies] = [x, 1];
  for (const bit of times.toString(2).slice(1)) {
    found = combine(found, copies, found, copies);
    copies *= 2;
    if (bit === "1") {
      found = combine(found, copies, x, 1);
      copies += 1;
    }
  }
  return found;
}

/** Whether an operation combines two ratios. */
export const combines = ({ kind }) => kind === "sum" || kind === "product";
