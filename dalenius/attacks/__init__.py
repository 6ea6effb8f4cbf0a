"""Attacks: what somebody can learn about one person from what was published. `Attack` is the report.

    >>> from dalenius.attacks import uniqueness
    >>> print(uniqueness({"age": [31, 31, 40], "sex": ["F", "M", "F"]}, on=["age", "sex"]))
    100% of 3 rows are the only one with their age, sex; the smallest class has 1.

An attack that fails is no proof of privacy: another may succeed. What bounds all of them is the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.attacks.attribute import attribute_from_counts, attribute_from_model
    from dalenius.attacks.demos import demo
    from dalenius.attacks.differencing import by_difference, difference, suppressed
    from dalenius.attacks.inversion import inversion_attack, invert
    from dalenius.attacks.likelihood import lira, rmia
    from dalenius.attacks.linkage import link, links
    from dalenius.attacks.membership import Records, loss_threshold, mislabelled
    from dalenius.attacks.precision import precision_attack
    from dalenius.attacks.reconstruction import random_groups, reconstruct
    from dalenius.attacks.result import Attack
    from dalenius.attacks.roc import judge
    from dalenius.attacks.shadow import Shadows, shadow_attack, train_shadows
    from dalenius.attacks.tabulation import Block, likeliest_block, solve_block
    from dalenius.attacks.timing import timing_attack
    from dalenius.attacks.tracing import trace
    from dalenius.attacks.unique import Uniqueness, uniqueness
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Attack": "dalenius.attacks.result",
            "Block": "dalenius.attacks.tabulation",
            "Records": "dalenius.attacks.membership",
            "Shadows": "dalenius.attacks.shadow",
            "Uniqueness": "dalenius.attacks.unique",
            "attribute_from_counts": "dalenius.attacks.attribute",
            "attribute_from_model": "dalenius.attacks.attribute",
            "by_difference": "dalenius.attacks.differencing",
            "demo": "dalenius.attacks.demos",
            "difference": "dalenius.attacks.differencing",
            "inversion_attack": "dalenius.attacks.inversion",
            "invert": "dalenius.attacks.inversion",
            "judge": "dalenius.attacks.roc",
            "likeliest_block": "dalenius.attacks.tabulation",
            "link": "dalenius.attacks.linkage",
            "links": "dalenius.attacks.linkage",
            "lira": "dalenius.attacks.likelihood",
            "loss_threshold": "dalenius.attacks.membership",
            "mislabelled": "dalenius.attacks.membership",
            "precision_attack": "dalenius.attacks.precision",
            "random_groups": "dalenius.attacks.reconstruction",
            "reconstruct": "dalenius.attacks.reconstruction",
            "rmia": "dalenius.attacks.likelihood",
            "shadow_attack": "dalenius.attacks.shadow",
            "solve_block": "dalenius.attacks.tabulation",
            "suppressed": "dalenius.attacks.differencing",
            "timing_attack": "dalenius.attacks.timing",
            "trace": "dalenius.attacks.tracing",
            "train_shadows": "dalenius.attacks.shadow",
            "uniqueness": "dalenius.attacks.unique",
        },
    )

__all__ = [
    "Attack",
    "Block",
    "Records",
    "Shadows",
    "Uniqueness",
    "attribute_from_counts",
    "attribute_from_model",
    "by_difference",
    "demo",
    "difference",
    "inversion_attack",
    "invert",
    "judge",
    "likeliest_block",
    "link",
    "links",
    "lira",
    "loss_threshold",
    "mislabelled",
    "precision_attack",
    "random_groups",
    "reconstruct",
    "rmia",
    "shadow_attack",
    "solve_block",
    "suppressed",
    "timing_attack",
    "trace",
    "train_shadows",
    "uniqueness",
]
