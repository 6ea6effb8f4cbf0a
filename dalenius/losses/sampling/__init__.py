"""Ways to draw the batch that a step works on, and what each does to the loss of the step.

    truncated_poisson     a Poisson sample, cut to a random subset where it is too large
    without_replacement   so many records of a known number, under replace
    participation         a fixed schedule: so many steps of a run, and no amplification
    shuffled              what a pass of shuffled batches costs at least; no upper bound is known
    schemes               the same by name

A plain Poisson sample is in `losses.poisson`, random allocation in `losses.allocation`.
"""
