"""Certified privacy profiles of worst-case pairs: what the answers about a loss are computed from.

A pair (P, Q) is the worst case of one release in one direction (`pair`); a profile encloses δ(ε) of a
composition of pairs, floating-point error included (`profile`). The routes to it:

    closed             Gaussians alone
    mixture_profile    Gaussian mixtures by contour integral: nodes, cutoff, window, arm, moments, contour,
                       jumps and shares are proved in docs/proofs/contour.md; plan, layout and splitting
                       choose; reading puts all together, and proof evaluates in balls
    discrete           all other pairs: binomial sums, laws on a lattice (lattice, convolution, composed), and
                       any pair through its divergence (dots, grid, saddle)

Pairs that several kinds of loss share are here too: atoms, gaussian_pairs, sampled, product. Directed
rounding is in rounding, balls and enclosure. Nothing here knows what a loss is.
"""
