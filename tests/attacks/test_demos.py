"""Each demonstration shows what it says: nobody counting loses, an account holds."""

from __future__ import annotations

import pytest

from dalenius.attacks import Attack, demo
from dalenius.attacks import demo_reconstruction as reconstruction
from dalenius.attacks.demos import DEMOS
from dalenius.errors import InvalidArgument


def test_reconstruction_recovers_all_bits_with_nobody_counting_and_a_coin_under_an_account() -> None:
    """A bit is off with nobody counting at 9 standard deviations. Under the account a guess is right with
    probability 0.5032 or less; 600 of 1,000 such coins come up with probability 1e-9."""
    first, second = demo("reconstruct", seed=1)
    assert first.success == 1
    assert 0.4 < second.success < 0.6
    assert second.bound is not None
    assert second.bound < 0.0064
    assert first.trials == second.trials == reconstruction.PEOPLE


def test_no_question_of_the_reconstruction_is_the_secret_itself() -> None:
    """A tenth as many answers as people give 630 bits, give or take 16; 750 have probability 1e-13."""
    figure = demo("reconstruct", seed=1)[0].figure
    assert figure is not None
    few = dict(zip(figure.series[0].x, figure.series[0].y, strict=True))[100]
    assert few < 0.75


def test_linkage_tells_diagnoses_from_rows_and_hardly_from_counts() -> None:
    """Rows are fixed by the seed. Counts are right for 0.52 of 2,000, and 0.6 is 7 deviations away: 1e-11."""
    first, second = demo("linkage", seed=1)
    assert first.success > 0.85
    assert first.details["linked rightly"] == first.details["linked to one"] > 1_500
    assert second.success < 0.6
    assert second.within_bound


def test_tabulation_finds_every_person_in_exact_tables_and_no_more_than_guessing_in_noisy_ones() -> None:
    """Some 0.45 of 140 people agree with a noisy block, and 0.75 is 7 deviations away: 1e-11."""
    first, second = demo("tabulation", seed=1)
    assert first.success == 1
    assert first.details["people certain"] == first.trials
    assert second.success < 0.75


def test_a_report_is_plain_values_and_one_sentence() -> None:
    found = Attack.counted("guess", 60, 100, baseline=0.5, bound=0.3, details={"asked": 2})
    plain = found.to_dict()
    assert plain["advantage"] == pytest.approx(0.2)
    assert plain["details"] == {"asked": 2}
    assert plain["low"] < 0.6 < plain["high"]
    assert str(found).endswith("guessing gives 50%; the loss allows an advantage of 0.3.")


def test_an_interval_covers_as_the_binomial_law_has_it() -> None:
    """All of n right: the lower end is (α/2)^(1/n)."""
    assert Attack.counted("sure", 50, 50, baseline=0.5, confidence=0.9).low == pytest.approx(0.05 ** (1 / 50))


def test_where_guessing_is_always_right_there_is_no_advantage() -> None:
    assert Attack.counted("known", 9, 9, baseline=1.0).advantage == 0


def test_an_unknown_demonstration_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="reconstruct, differencing"):
        demo("magic")


def test_every_demonstration_names_a_module_that_has_it() -> None:
    from importlib import import_module

    for one in DEMOS.values():
        assert callable(import_module(f"dalenius.attacks.{one.module}").demo)


def test_a_seed_fixes_the_people() -> None:
    first, again, other = (demo("linkage", seed=seed)[0] for seed in (4, 4, 5))
    assert first.to_dict() == again.to_dict() != other.to_dict()
