from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dalenius import noise
from dalenius.display import with_bar
from dalenius.errors import InvalidArgument, UnknownKind
from dalenius.losses import Approximate, Gaussian, Pure
from dalenius.mechanisms import Laplace
from dalenius.mechanisms.evaluation import Evaluation
from dalenius.privacy.quantized import Grid
from dalenius.privacy.unit import Unit
from dalenius.release import EXACT, Entry, Receipt, Release
from dalenius.release.digits import upward

RECEIPT = Receipt(Pure(1), "{}", EXACT)
MAY = date(2026, 5, 1)
ENTRY = Entry(account="people", number=7, hash="ab12", left="epsilon 0.3", signature="77ff")
ONE = Release({"n": (12,), "n_low": (9,), "n_high": (15,)}, ("n",), RECEIPT)
CITIES = Release(
    {"city": ("Aix", "Bonn"), "n": (12, 7), "n_low": (9, 4), "n_high": (15, 10)}, ("n",), RECEIPT
)


def test_one_number_is_one_line() -> None:
    assert str(ONE) == "12 ± 3 (95 %), epsilon 1, uncharged"
    assert repr(ONE) == "<Release 12 ± 3 (95 %), epsilon 1, uncharged>"


def test_several_measures_are_named() -> None:
    both = Release({"n": (12,), "n_low": (9,), "n_high": (15,), "m": (0.5,)}, ("n", "m"), RECEIPT)
    assert str(both) == "n 12 ± 3, m 0.5 (95 %), epsilon 1, uncharged"


def test_rows_are_a_table() -> None:
    lines = str(CITIES).splitlines()
    assert lines[0].split() == ["city", "n"]
    assert [line.split() for line in lines[2:4]] == [["Aix", "12", "±", "3"], ["Bonn", "7", "±", "3"]]
    assert lines[-1] == "± (95 %), epsilon 1, uncharged"
    assert repr(CITIES) == "<Release of 2 rows: city, n, n_low, n_high>"


def test_long_tables_end_in_a_note() -> None:
    long = Release({"n": tuple(range(1000))}, ("n",), RECEIPT)
    assert "960 more rows" in str(long)
    assert "800 more rows" in long._repr_html_()
    assert len(str(long).splitlines()) < 50


def test_no_numbers_are_a_table_too() -> None:
    empty = Release({"n": ()}, ("n",), RECEIPT)
    assert "epsilon 1" in str(empty)
    assert len(empty) == 0


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        ((12, 9, 15), "12 ± 3"),
        ((3.14159, 3.13, 3.15318), "3.142 ± 0.012"),
        ((1234567.8, 1234000.0, 1235135.6), "1,234,568 ± 568"),
        ((0.5, 0.1, 0.6), "0.50 (0.10 to 0.60)"),
        ((-0.02, -0.05, 0.01), "-0.020 ± 0.030"),
        ((1e300, 0.0, 2e300), "1e+300 ± 1e+300"),
        ((1e-20, 0.0, 2e-20), "1e-20 ± 1e-20"),
        ((10**400, 10**400 - 10**399, 10**400 + 10**399), f"{10**400:,} ± {10**399:,}"),
        ((True, 0, 5), "1 (0 to 5)"),
        ((math.nan, 0, 1), "nan"),
        ((None, None, None), "–"),
        ((5, None, None), "5"),
        ((8013, 7074, 44000), "8,013 (7,074 to 44,000)"),
        ((8013, 7074, None), "8,013 (7,074 or more)"),
        ((8013, 7074, math.inf), "8,013 (7,074 or more)"),
        ((8013, -math.inf, 9000), "8,013 (9,000 or less)"),
        ((8013, -math.inf, math.inf), "8,013 (open)"),
        ((2000.48, 2000.31, None), "2,000.48 (2,000.31 or more)"),
        ((2000.48, None, 2000.6512), "2,000.48 (2,000.66 or less)"),
        ((8013, None, math.nan), "8,013"),
        ((MAY, MAY, date(2026, 5, 9)), "2026-05-01 (2026-05-01 to 2026-05-09)"),
        ((MAY, MAY, None), "2026-05-01 (2026-05-01 or later)"),
        ((MAY, math.inf, MAY), "2026-05-01 (2026-05-01 or earlier)"),
        ((MAY, None, None), "2026-05-01"),
        ((-1234.5, -1239.5, -1229.5), "-1,234.5 ± 5.0"),
    ],
)
def test_a_number_has_the_digits_its_bar_allows(cells: tuple[float, float, float], shown: str) -> None:
    assert with_bar(*cells) == shown


def test_the_page_is_harmless() -> None:
    nasty = Release({"<b>k</b>": ("<script>alert(1)</script>\x1b[2J",), "n": (1,)}, ("n",), RECEIPT)
    page = nasty._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "<b>" not in page
    assert "\x1b" not in page + str(nasty)
    assert "[red]" in str(Release({"k": ("[red]",), "n": (1,)}, ("n",), RECEIPT))


def test_receipts_state_everything() -> None:
    paid = replace(
        RECEIPT,
        loss=Gaussian(noise_multiplier=4),
        unit=Unit("person", column="id"),
        entry=ENTRY,
        bounds=("values clipped to [0, 1]",),
        postprocessing=("rounded",),
    )
    text = str(paid)
    epsilon = math.ceil(Gaussian(noise_multiplier=4).epsilon(1e-6).upper * 1e3) / 1e3
    assert f"epsilon {epsilon:g} at delta 1e-06" in text
    for stated in (
        "account:    people, entry 7\nleft:       epsilon 0.3\nhash:       ab12\nsignature:  77ff\n",
        "person (id), add_remove",
        "values clipped",
        "rounded",
        EXACT,
    ):
        assert stated in text
    assert "uncharged" in str(RECEIPT)


def test_who_paid_is_shown_wherever_the_release_is() -> None:
    paid = replace(ONE, receipt=replace(RECEIPT, unit=Unit("patient", "patient_id", "month"))).charged(ENTRY)
    assert str(paid) == "12 ± 3 (95 %), epsilon 1 per patient and month, people, entry 7\nleft: epsilon 0.3"
    assert "people, entry 7" in paid._repr_html_() and "<dd>ab12</dd>" in paid._repr_html_()
    with pytest.raises(InvalidArgument, match="already"):
        paid.charged(ENTRY)


def test_a_receipt_may_state_its_cost_at_a_delta_of_its_own_and_warn() -> None:
    loss = Gaussian(noise_multiplier=4)
    paid = replace(RECEIPT, loss=loss, delta=Fraction(1, 10**9), warnings=("clipping\x1b may matter",))
    assert paid.promise == (loss.epsilon(Fraction(1, 10**9)).upper, Fraction(1, 10**9))
    assert "at delta 1e-09" in paid.cost and "warning:    clipping� may matter" in str(paid)
    release = replace(CITIES, receipt=paid)
    assert str(release).endswith("uncharged\nwarning: clipping� may matter")
    assert Release.from_json(release.to_json()) == release


@pytest.mark.parametrize(
    "bad", [{"number": 0}, {"number": "7"}, {"hash": "no"}, {"signature": "?"}, {"account": 3}]
)
def test_what_is_no_entry_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        replace(ENTRY, **bad)


def test_without_error_bars_there_is_no_confidence() -> None:
    assert Release({"n": (12,)}, ("n",), RECEIPT).confidence is None
    assert ONE.confidence == Fraction(19, 20)
    assert ONE.postprocess("bars left out", {"n": (12,)}).confidence is None


def test_yes_and_no_are_words() -> None:
    found = Release({"n": (12,), "stable": (True,)}, ("n", "stable"), RECEIPT)
    assert str(found) == "n 12, stable yes, epsilon 1, uncharged"


def test_the_page_holds_the_receipt() -> None:
    page = CITIES.clamp(lower=0)._repr_html_()
    assert "<dt>afterwards</dt><dd>clamped to at least 0</dd>" in page
    assert '<td style="text-align:right">12 ± 3</td>' in page


def test_the_cost_is_stated_where_it_is_finite_and_rounded_up() -> None:
    assert RECEIPT.promise == (1.0, 0)
    assert replace(RECEIPT, loss=Pure(0.2)).cost == "epsilon 0.2"
    assert replace(RECEIPT, loss=Pure(Fraction(1, 3))).cost == "epsilon 0.3334"
    lossy = replace(RECEIPT, loss=Approximate(1, delta=Fraction(1, 200)))
    assert lossy.cost == "epsilon 0.9932 at delta 0.01"
    assert lossy.loss.epsilon(lossy.promise[1]).upper <= 1


def test_seeded_noise_is_loud() -> None:
    mechanism = Laplace(scale=1, sensitivity=1, grid=Grid(0), exact=True)
    with noise.seeded(b"a test"):
        found = mechanism.release(3)
    assert found.receipt.tainted
    for text in (str(found), repr(found), str(found.receipt), found._repr_html_()):
        assert "TAINTED" in text
    assert "TAINTED" not in str(mechanism.release(3))


def test_json_reads_back_the_same() -> None:
    odd = Release(
        {"k": ("a", None, True), "n": (1, -(10**30), 3.5), "x": (math.inf, -math.inf, 0.1)},
        ("n", "x"),
        replace(RECEIPT, unit=Unit("person", window="day"), entry=ENTRY, bounds=("b",), tainted=True),
        None,
    )
    assert Release.from_json(odd.to_json()) == odd
    assert Release.from_json(ONE.to_json()) == ONE
    nan = Release.from_json(Release({"n": (math.nan,)}, ("n",), RECEIPT).to_json())
    assert math.isnan(nan.value)
    assert [type(cell) for cell in Release.from_json(odd.to_json()).columns["k"]] == [str, type(None), bool]


def test_the_format_is_kept() -> None:
    """Written once, read for ever."""
    golden = (
        '{"kind":"release","version":1,"columns":[{"name":"n","cells":[12]},{"name":"n_low","cells":[9]},'
        '{"name":"n_high","cells":[15]}],"measures":["n"],"confidence":"0.95","receipt":{"loss":{"epsilon":"1",'
        '"kind":"pure","relation":"add_remove","version":1},"mechanism":"{}","numerics":"exact noise on '
        'whole grid steps, each record rounded by itself","unit":null,"entry":null,'
        '"bounds":[],"postprocessing":[],"tainted":false}}'
    )
    assert ONE.to_json() == golden
    assert Release.from_json(golden) == ONE
    paid = golden.replace(
        '"entry":null',
        '"entry":{"account":"people","number":7,"hash":"ab12","left":"epsilon 0.3","signature":"77ff"}',
    )
    assert ONE.charged(ENTRY).to_json() == paid
    assert Release.from_json(paid) == ONE.charged(ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "3",
        '{"kind":"release","version":1}',
        ONE.to_json().replace('"cells":[12]', '"cells":[[1]]'),
    ],
)
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        Release.from_json(text)


def test_unknown_versions_and_fields_are_refused() -> None:
    with pytest.raises(UnknownKind):
        Release.from_json(ONE.to_json().replace('"version":1,"columns"', '"version":2,"columns"'))
    plain = json.loads(ONE.to_json())
    plain["receipt"]["more"] = 1
    with pytest.raises(InvalidArgument):
        Release.from_json(json.dumps(plain))


def test_arrays_become_plain_cells() -> None:
    found = Release({"n": tuple(np.array([1, 2])), "x": tuple(np.array([0.5, np.nan]))}, ("n",), RECEIPT)
    assert [type(cell) for cell in found.columns["n"]] == [int, int]
    json.loads(found.to_json())


def test_clamping_is_free_and_listed() -> None:
    found = Release({"n": (-2,), "n_low": (-5,), "n_high": (1,)}, ("n",), RECEIPT).clamp(lower=0)
    assert (found.low, found.value, found.high) == (0, 0, 1)
    assert found.receipt.postprocessing == ("clamped to at least 0",)
    assert found.loss == Pure(1)
    half = ONE.clamp(0, 9.5)
    assert (half.low, half.value, half.high) == (9, 9.5, 9.5)
    with pytest.raises(InvalidArgument):
        ONE.clamp(2, 1)


def test_clamping_spoils_no_bar_that_held() -> None:
    """A truth within the limits stays within its bar."""
    for low, high, truth in ((-5, 1, 0), (-9, -3, 0), (2, 8, 5), (9, 12, 10)):
        bar = Release({"n": ((low + high) / 2,), "n_low": (low,), "n_high": (high,)}, ("n",), RECEIPT).clamp(
            0, 10
        )
        assert not low <= truth <= high or bar.low <= truth <= bar.high


def test_rounding_widens_bars() -> None:
    found = Release({"x": (1.2345,), "x_low": (1.0449,), "x_high": (1.4201,)}, ("x",), RECEIPT).round(2)
    assert (found.low, found.value, found.high) == (1.04, 1.23, 1.43)
    assert found.receipt.postprocessing == ("rounded to 2 decimal places",)
    tens = Release({"n": (126,), "n_low": (111,), "n_high": (141,)}, ("n",), RECEIPT).round(-1)
    assert (tens.low, tens.value, tens.high) == (110, 130, 150)
    assert isinstance(ONE.round().value, int)
    huge = Release({"x": (1e300, math.inf, math.nan, None)}, ("x",), RECEIPT).round(3)
    assert huge.columns["x"][:2] == (1e300, math.inf)


def test_keys_are_neither_clamped_nor_rounded() -> None:
    found = Release({"year": (2026.5,), "n": (3.7,)}, ("n",), RECEIPT).round().clamp(0, 1)
    assert found.columns == {"year": (2026.5,), "n": (1,)}


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        Release({"n": (1,), "m": (1, 2)}, ("n",), RECEIPT)
    with pytest.raises(InvalidArgument):
        Release({"n": (1,)}, ("m",), RECEIPT)


def test_a_real_release_prints() -> None:
    made = Evaluation(classes=("a", "b"), scale=0.01, answer="confusion").release((["a"], ["b"]))
    assert "1 ± 0" in str(made)
    assert Release.from_json(made.to_json()) == made


def test_printing_alone_loads_rich() -> None:
    code = "import sys, dalenius.release; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    "epsilon", [Fraction(3, 10), Fraction(1, 3), Fraction(2, 3), Fraction(7), Fraction(1, 10**9 + 7)]
)
def test_a_cost_as_a_float_is_not_below_it(epsilon: Fraction) -> None:
    found = upward(epsilon)
    assert Fraction(repr(found)) >= epsilon
    assert found <= math.nextafter(float(epsilon), math.inf)
