"""Numbers known to lie in an interval, at a working precision: `arb`, `acb`; and exact ones, `fmpq`, `fmpz`.

They are python-flint's where it can be imported. Elsewhere they are twins of those in Python integers: as
rigorous, slower, and without what training has no need of, which names the package to install. Nothing
else in the library imports python-flint.

    >>> from dalenius.arithmetic import arb, workprec
    >>> with workprec(200):
    ...     arb(2).sqrt() ** 2 == 2, abs(arb(2).sqrt() ** 2 - 2) < 1e-55
    (False, True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["acb", "arb", "arb_poly", "fmpq", "fmpz", "precision", "workprec"]

if TYPE_CHECKING:
    from flint import acb, arb, arb_poly, ctx, fmpq, fmpz

    workprec = ctx.workprec

    def precision() -> int:
        """The working precision here and now, in bits."""
        return ctx.prec

else:
    try:
        from flint import acb, arb, arb_poly, ctx, fmpq, fmpz
    except ImportError:
        from dalenius.arithmetic import rationals, reals
        from dalenius.arithmetic.complexes import Complex
        from dalenius.arithmetic.working import precision, workprec

        acb, arb = Complex, reals.Real
        arb_poly, fmpq, fmpz = rationals.absent, rationals.Rational, int
    else:
        workprec = ctx.workprec

        def precision() -> int:
            """The working precision here and now, in bits."""
            return ctx.prec
