// The upper or the lower distributions of the operations of a run, one after another.

import { edgesOf, extended } from "./cells.js";
import { means, scaled, spread } from "./combine.js";
import { LARGEST, STEP, lognormal, mixed, reachOf, short } from "./distribution.js";
import { UNIT } from "./elementary.js";
import { pairProfile, profile } from "./profile.js";
import { combines } from "./program.js";

/** Inverse noise multiplier at which the ratios that matter, near exp(s^2 / 2), exceed the range of doubles. */
const LARGEST_INVERSE = 26;

/** The widest cell of z: the errors of `lognormal` are checked up to this width. */
const WIDEST = 0.6;

/** s errs by 3 units; a little less noise for the upper end, and a little more for the lower one. */
const rounded = (s, upper) => short(s * (upper ? 1 + 8 * UNIT : 1 - 8 * UNIT), upper);

/** The ratio of a step on the cells between `places`. */
function step({ s }, places, reach, upper) {
  const more = rounded(s, upper);
  if (more > LARGEST_INVERSE) throw new RangeError("The ratio of a step is too large.");
  const found = lognormal(more, places, reach, upper);
  if (!(found.values[found.values.length - 1] <= LARGEST)) throw new RangeError("The ratio of a step is too large.");
  return found;
}

/** Ends of cells of z that cover both tails: from the first multiple to the last one, with a width at each place. */
export function placesOf({ s }, reach, widthAt) {
  const last = Math.ceil((rounded(s, true) + reach) / STEP);
  const places = [Math.floor(-reach / STEP)];
  while (places[places.length - 1] < last) {
    const at = places[places.length - 1];
    places.push(at + Math.max(Math.round(Math.min(widthAt(at * STEP), WIDEST) / STEP), 1));
  }
  return places;
}

/** The two ratios of a sum or a product. */
function operands({ kind, a, b, shares }, found) {
  if (kind === "product") return [found[a], found[b]];
  const one = scaled(found[a], shares[0]);
  return [one, a === b ? one : scaled(found[b], shares[1])];
}

/** @throws RangeError The mean beyond the doubles exceeds `most`, so that no bound can follow. */
function checked(found, { kind }, most) {
  if (kind === "product" && found.infinity > most) throw new RangeError("The likelihood ratio exceeds the range of doubles.");
  return found;
}

/**
 * Upper distributions of all operations on wide cells, with local standard deviations; a last combination is left out.
 *
 * @param nodes From `program`.
 * @param limits `tail`, the probability for one step that may be moved to the ends; its `share` of delta; and `most`.
 * @param fineness The width of a cell in local standard deviations.
 */
export function probed(nodes, { tail, share, most }, fineness) {
  const found = [];
  for (const node of nodes) {
    if (combines(node) && found.length === nodes.length - 1) break;
    if (node.kind === "step") {
      const reach = reachOf(tail);
      found.push(step(node, placesOf(node, reach, () => fineness), reach, true));
    } else if (node.kind === "given") {
      found.push(node.given(tail * node.copies));
      node.size = found[found.length - 1].values.length;
    } else if (node.kind === "mixed") found.push(mixed(found[node.a], node.rate));
    else {
      const [a, b] = operands(node, found);
      const times = node.kind === "product";
      const cells = edgesOf(a, b, times, { fineness, tail: tail * node.copies, share });
      found.push(checked(spread(a, b, times, cells), node, most));
    }
  }
  return found;
}

/** The profile of the last operation from the distributions of `probed`, which lack it if it combines two ratios. */
export function probedProfile(nodes, found) {
  const last = nodes[nodes.length - 1];
  if (!combines(last)) return profile(found[found.length - 1], true);
  return pairProfile(...operands(last, found), last.kind === "product", true);
}

/**
 * The profiles of the last operation on given cells, from upper and from lower distributions.
 *
 * @param nodes From `program`.
 * @param grids `places` of each step, and `edges` of each sum and product, except of the last operation.
 * @param limits As in `probed`.
 * @param onPairs Called with the number of pairs of atoms of each combination.
 */
export function evaluated(nodes, grids, { tail, most }, onPairs) {
  const [uppers, lowers] = [[], []];
  const last = nodes.length - 1;
  for (let k = 0; k <= last; k += 1) {
    const node = nodes[k];
    if (!combines(node)) {
      const simple = (found, upper) => {
        if (node.kind === "given") return node.given(tail * node.copies);
        return node.kind === "step" ? step(node, grids[k].places, reachOf(tail), upper) : mixed(found[node.a], node.rate);
      };
      uppers.push(simple(uppers, true));
      lowers.push(simple(lowers, false));
      continue;
    }
    const times = node.kind === "product";
    const [a, b] = operands(node, uppers);
    const [c, d] = operands(node, lowers);
    onPairs(a.values.length * b.values.length);
    if (k === last) {
      return { upper: checked(pairProfile(a, b, times, true), node, most), lower: pairProfile(c, d, times, false) };
    }
    const cells = { edges: extended(grids[k].edges, a, b, times, tail * node.copies) };
    uppers.push(checked(spread(a, b, times, cells), node, most));
    lowers.push(means(c, d, times, cells));
  }
  return { upper: profile(uppers[last], true), lower: profile(lowers[last], false) };
}

/** The number of combinations of a run. */
export const work = (nodes) => nodes.filter(combines).length;
