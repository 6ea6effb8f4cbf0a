"""Weights of a logistic model by objective perturbation, with an approximate minimum that is paid for.

The model. Σᵢ ℓ(θ; xᵢ, yᵢ) + Λ/2·‖θ‖² + ⟨b, θ⟩ is minimised over θ, where ℓ is the logistic loss (softmax for
three classes and more) and b is noise. One row changes the gradient by g = r ⊗ x, r a residual (`residuals`),
and the matrix of second derivatives by a positive semidefinite H of trace at most T = ‖x‖²·(¼, or 1 − 1/K).

Theorem (after Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012; Redberg, Koskela and
Wang 2023). θ ↦ b(θ) = −Σ∇ℓ − Λθ is one to one. Between data with and without a row the densities of the
minimum at θ have the ratio ν(b)/ν(b + g) · det(A + H)/det(A) with A ⪰ Λ, and 1 ≤ det(A + H)/det(A) ≤
e^{tr(A⁻¹H)} ≤ e^{T/Λ}. So

    delta = 0   b of independent Laplace entries of scale s: the minimum costs ‖g‖₁/s + T/Λ
    delta > 0   two classes, b ~ N(0, s²): as g = r·x along a fixed x, the log ratio under either data is at
                most μ|Z| + μ²/2 + T/Λ, with Z standard normal and μ = max‖g‖₂/s. For ε − T/Λ ≥ μ²/2 it is
                positive beyond ε on |Z| > 0 only, two tails of the Gaussian mechanism with that μ:
                δ(ε) ≤ 2·δ_Gaussian(ε − T/Λ)

A unit of k rows has k-fold g and T; a replaced one twice the g of that, and the same T.

Approximate minima (Iyengar et al. 2019, with constants of its own). The b of the theorem is continuous, and
what is drawn is the middle of its cell of a grid of step h, so off by at most h/2 an entry. Gaussian b is
rounded to the grid. Laplace b is a discrete Laplace cell and uniform in it, whose density changes by at most
e^{(‖g‖₁ + Dh)/s} over a distance g: that is charged. Found is a θ̂ where the gradient is at most t. So the
gradient of the true objective there is at most τ = t + h√D/2, and by strong convexity θ̂ is within τ/Λ of the
true minimum. Given that, θ̂ moves by at most 2τ/Λ between neighbours, and is released under Laplace noise of
that sensitivity, with a small share of ε. That floating point finds a gradient well enough is a model and not
a proof, and the receipt says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound, QueryFailed
from dalenius.learn.tabular.columns import Codes, Columns
from dalenius.learn.tabular.promise import Promise, check_scale, drawable
from dalenius.learn.tabular.residuals import norms
from dalenius.learn.tabular.sums import ONE, Floats, Whole
from dalenius.losses.gaussian import Gaussian as GaussianLoss
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate, Pure
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.laplace import Laplace
from dalenius.privacy.sensitivity import Sensitivity, sqrt_up

CURVED, OUTPUT = Fraction(1, 10), Fraction(1, 50)
"""The shares of ε for the curvature, T/Λ, and for the approximate minimum."""
REACHED = Fraction(1, 10**6)
"""How long the gradient may be at the minimum found, in norms of a row; half of it is left to rounding."""
CELLS = 2**30
"""Cells of the grid of b in the norm of a row."""
MOST_ROUNDS = 1000
MOST_WEIGHTS = 2**13
"""The matrix of second derivatives has their square as entries."""
NUMERICS = (
    "noise on a grid; a minimum to a gradient of 1e-6 of a row, covered by exact noise of its own; "
    "rounding errors of float64 sums taken as independent"
)


@dataclass(frozen=True)
class Objective:
    """What is added to the loss, and to its minimum: all of it public."""

    classes: int
    size: int
    ridge: Fraction
    row: Fraction
    noise: Fraction
    pure: bool
    output: Additive

    def perturbation(self) -> Floats:
        """b, a row for each weight vector."""
        cell = self.row / CELLS
        draw = noise.discrete_laplace if self.pure else noise.rounded_gaussian
        found = draw(self.noise / cell, self.vectors * self.size)
        return np.asarray(found * float(cell)).reshape(self.vectors, self.size)

    @property
    def vectors(self) -> int:
        """How many weight vectors there are: one for two classes."""
        return 1 if self.classes == 2 else self.classes

    def minimum(self, rows: Whole, labels: Codes) -> Floats:
        """The weights that are released."""
        seen = labels >= 0
        tolerance = float(self.row * REACHED / 2)
        found = minimize(
            rows[seen] / ONE, labels[seen], self.perturbation(), float(self.ridge), tolerance=tolerance
        )
        steps = self.output.steps(found.ravel()) + self.output.draw(found.size)
        return np.asarray(steps * float(self.output.step)).reshape(found.shape)


def loss_of(promise: Promise) -> Loss:
    """What both methods of noise cost: nothing more is known than epsilon and delta."""
    if promise.pure:
        return Pure(promise.epsilon, relation=promise.relation)
    return Approximate(promise.epsilon, delta=promise.delta, relation=promise.relation)


def plan(promise: Promise, columns: Columns, classes: int, ridge: Fraction) -> Objective:
    """Noise and ridge by the theorem; a larger ridge may be asked for."""
    if not promise.pure and (classes > 2 or promise.rows > 1 or promise.relation == "replace"):
        raise NotSound(
            "Objective perturbation with a delta is proved for two classes and units of one row that "
            "come or go.",
            remedy="Pass delta=0, or method='gradient'.",
        )
    size, vectors = columns.width + 1, 1 if classes == 2 else classes
    if vectors * size > MOST_WEIGHTS:
        raise InvalidArgument(
            f"Objective perturbation is for {MOST_WEIGHTS} weights at most, and these are {vectors * size}.",
            remedy="Pass a delta such as 1e-6 and method='gradient', or fewer columns or classes.",
        )
    row = sqrt_up(columns.l2**2 + 1)
    trace = promise.rows * row**2 * (Fraction(1, 4) if classes == 2 else 1 - Fraction(1, classes))
    curved, output = promise.epsilon * CURVED, promise.epsilon * OUTPUT
    strong = max(ridge, trace / curved)
    left, entries = promise.epsilon - output - trace / strong, vectors * size
    cell = row / CELLS
    if promise.pure:
        twice = 2 if promise.relation == "replace" else 1
        far = twice * promise.rows * (columns.l1 + 1) * norms(classes)[0] / ONE
        scale = (far + entries * cell) / left
    else:
        # The least multiplier with 2δ(left) ≤ δ, and with μ²/2 ≤ left.
        found = GaussianLoss.calibrate(epsilon=left, delta=promise.delta / 2).noise_multiplier
        scale = row * max(found, sqrt_up(1 / (2 * left)))
    off = 2 * (row * REACHED + cell * sqrt_up(Fraction(entries)) / 2) / strong
    moved = Sensitivity(l0=entries, l2=off, relation=promise.relation)
    check_scale(scale / cell)
    last = drawable(Laplace.calibrate(epsilon=output, sensitivity=moved))
    return Objective(classes, size, strong, row, scale, promise.pure, last)


def minimize(rows: Floats, labels: Codes, noise: Floats, ridge: float, *, tolerance: float) -> Floats:
    """Newton's method with halved steps, until the gradient is within the tolerance."""
    problem = _Problem(rows, labels, noise, ridge)
    weights = np.zeros_like(noise)
    height, gradient, chances = problem.at(weights)
    for _ in range(MOST_ROUNDS):
        length = float(np.linalg.norm(gradient))
        if length <= tolerance:
            return weights
        step = np.linalg.solve(problem.curvature(chances), gradient.ravel()).reshape(weights.shape)
        part = 1.0
        while True:
            there = weights - part * step
            found, slope, likely = problem.at(there)
            if found < height or float(np.linalg.norm(slope)) < length or part < 1e-12:
                break
            part /= 2
        weights, height, gradient, chances = there, found, slope, likely
    raise QueryFailed


@dataclass(frozen=True)
class _Problem:
    rows: Floats
    labels: Codes
    noise: Floats
    ridge: float

    def at(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """The objective, its gradient, and what is said of each row."""
        margins = self.rows @ weights.T
        if len(weights) == 1:
            margins = np.hstack([np.zeros_like(margins), margins])
        most = margins.max(axis=1, keepdims=True, initial=-np.inf)
        powers = np.exp(margins - most)
        whole = powers.sum(axis=1, keepdims=True)
        chances = powers / whole
        own = np.take_along_axis(margins, self.labels[:, np.newaxis], axis=1)
        height = float((most + np.log(whole) - own).sum())
        height += self.ridge / 2 * float(np.square(weights).sum()) + float((self.noise * weights).sum())
        missed = chances - (self.labels[:, np.newaxis] == np.arange(margins.shape[1]))
        gradient = missed[:, -len(weights) :].T @ self.rows + self.ridge * weights + self.noise
        return height, gradient, chances[:, -len(weights) :]

    def curvature(self, chances: Floats) -> Floats:
        """The matrix of second derivatives."""
        size, vectors = self.rows.shape[1], chances.shape[1]
        found = self.ridge * np.eye(vectors * size)
        for i in range(vectors):
            for j in range(vectors):
                weight = chances[:, i] * ((i == j) - chances[:, j])
                block = (self.rows * weight[:, np.newaxis]).T @ self.rows
                found[i * size : (i + 1) * size, j * size : (j + 1) * size] += block
        return found
