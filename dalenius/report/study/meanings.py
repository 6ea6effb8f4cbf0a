"""What the words of a study mean, for a reader who has not met them."""

from __future__ import annotations

from dalenius.report.study.result import Study


def explained(study: Study) -> dict[str, str]:
    """Each word that the page of this study uses, with what it means there."""
    found = {
        "epsilon": "How much a training may tell about any one row, by a proof that holds against every "
        "attacker. The smaller, the more private; without privacy there is no such limit.",
        "clip and noise": "How a run is made private: what one row may change in a step is cut at the length "
        "clip, and noise is added whose standard deviation is so many times the clip.",
        "accuracy": _accuracy(study),
    }
    if study.plain is not None:
        found["change"] = (
            "Percentage points above or below the run without privacy. A change smaller than the ± may be "
            "chance: each run is one training, and another one gives other numbers. All runs begin with the "
            "same weights, and have the same sampler and number of steps."
        )
    found["worst class, worst group"] = (
        "Which one the model is right about least often. With many classes or groups one of them is low by "
        "chance; how sure each share is, the tables by class and by group say."
    )
    if any(run.kind == "clipping" for run in study.runs):
        found["clipping alone"] = (
            "Clipped as a private run, with next to no noise, and not private. What it loses against the run "
            "without privacy is lost to clipping; what the private run with the same clip loses beyond that "
            "is lost to noise."
        )
    if study.plain is not None and study.plain.membership is not None:
        found |= _membership(study.plain.membership.lira is not None)
    return found


def _accuracy(study: Study) -> str:
    if study.charged:
        return (
            "The share of test rows that the model is right about, computed from noisy tables alone. ± is "
            "the reach of the noise at confidence 95%, about the test rows at hand. A dash stands where "
            "noise hides the share: more rows or a larger metrics epsilon show it."
        )
    return (
        "The share of test rows that the model is right about. ± is the 95% interval of Clopper and Pearson, "
        "for rows drawn as the test rows were."
    )


def _membership(shadowed: bool) -> dict[str, str]:
    found = {
        "membership AUC": "How well an attacker tells a row that the model was trained on from one that it "
        "was not, by how sure the model is of its label: the chance to order such a pair rightly. 0.5 is "
        "guessing, 1 is always right. ± holds at confidence 95%. This attack is a weak one: that it fails is "
        "no proof. What no attack can exceed, on average, is drawn below as what the loss allows."
    }
    if shadowed:
        found["LiRA AUC"] = (
            "The same for a stronger attacker, who has trained models of the same recipe on rows like these "
            "to learn what is usual for each row (likelihood ratios, Carlini et al. 2022)."
        )
    return found
