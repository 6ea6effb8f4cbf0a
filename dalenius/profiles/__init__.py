"""Certified privacy profiles of worst-case pairs: what the answers about a loss are computed from.

A pair (P, Q) is the worst case of one release in one direction (`pair`); a profile encloses δ(ε) of a
composition of pairs, floating-point error included (`profile`). The routes to it:

    closed             Gaussians alone
    mixture_profile    Gaussian mixtures by contour integral, with Gaussians and closed transforms: without
                       cutoffs (rows, plain; outlook chooses), or with them (nodes, cutoff, window, arm,
                       moments, contour, jumps, shares; plan, layout, splitting choose, reading puts all
                       together, proof evaluates in balls); proved in docs/proofs/contour.md
    discrete           all other pairs: binomial sums, laws on a lattice (lattice, convolution, composed), and
                       any pair through its divergence (dots, grid, saddle)

Pairs that several kinds of loss share are here too: atoms, gaussian_pairs, sampled, product. Directed
rounding is in rounding, balls and enclosure. Nothing here knows what a loss is.
"""
