// Integrals of a normal density times slowly varying functions, by Gauss quadrature on short panels.

import { exp } from "./elementary.js";

// Nodes and weights of Gauss-Legendre quadrature with eight points on [0, 1]; 1 - NODE[k] is NODE[7 - k].
const PLACES = [0.1834346424956498, 0.525532409916329, 0.7966664774136267, 0.9602898564975363];
const SHARES = [0.362683783378362, 0.31370664587788727, 0.22238103445337448, 0.10122853629037626];

/** Nodes on [0, 1]. */
export const NODE = [3, 2, 1, 0].map((k) => (1 - PLACES[k]) / 2).concat(PLACES.map((x) => (1 + x) / 2));

/** Weights of the nodes. */
export const WEIGHT = [3, 2, 1, 0].map((k) => SHARES[k] / 2).concat(SHARES.map((w) => w / 2));

/**
 * The half width of a panel, times the size of the logarithmic derivative of the integrand, for which eight
 * nodes suffice. The integrands are entire and grow on the ellipse with the sum of semi-axes 32 (in half
 * widths) at most by e^(16 / 2 + 1.3). The error of the quadrature relative to the integral is therefore at
 * most 64 / 15 times e^9.3 / 32^16 = 4e-20.
 */
export const STEEPEST = 0.5;

/** 1 / sqrt(2 pi). */
export const DENSITY_AT_ZERO = 0.3989422804014327;

const SPLIT = 32768;

/** The standard normal density; its relative error is below 8 units, since z * z would be inexact. */
export function density(z) {
  const near = Math.round(z * SPLIT) / SPLIT; // at most 21 bits for |z| < 64, so its square is exact
  return DENSITY_AT_ZERO * exp(-0.5 * near * near) * exp(-0.5 * (z - near) * (z + near));
}
