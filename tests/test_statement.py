"""Statements against the registry's schema.

`SCHEMA` restates what schemas/deployments-schema.yaml of opendp/deployments-registry-data demands at commit
057e5d81cf60150dd3307e0cf4504b957802fb3b (autumn 2026): which fields there are, their types and enumerations,
which are required, and the tier each belongs to.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses import Approximate, Pure
from dalenius.mechanisms import Gaussian, Laplace, PermuteAndFlip
from dalenius.privacy.quantized import Grid
from dalenius.privacy.unit import Unit
from dalenius.release import Entry, Release
from dalenius.statement import Publication, to_yaml

TEXT, NUMBER, WHOLE, DATE = "text", "number", "whole", "date"
Choice = tuple[str, ...]
# Each field: its type or choices, its tier, whether it is required.
SCHEMA: dict[str, dict[str, tuple[Any, int, bool]]] = {
    "basic": {
        "name": (TEXT, 1, True),
        "data_curators": ("curators", 1, True),
        "description": (TEXT, 1, True),
        "intended_use": (TEXT, 1, True),
        "data_product_type": (
            (
                "Summary statistics",
                "Machine learning model",
                "Dataset",
                "Synthetic data",
                "Interactive API",
                "SQL queries",
            ),
            1,
            True,
        ),
        "data_product_region": (TEXT, 1, True),
        "data_product_sector": (
            ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
            1,
            False,
        ),
        "publication_date": (DATE, 1, True),
    },
    "dp_variant": {
        "variant_name": (
            ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
            2,
            False,
        ),
        "data_domain": (TEXT, 3, False),
        "unprotected_quantities": (TEXT, 3, False),
    },
    "privacy_loss": {
        "privacy_unit": (TEXT, 2, False),
        "privacy_unit_details": (TEXT, 3, False),
        "number_of_privacy_units": (WHOLE, 3, False),
        "privacy_parameters": ("parameters", 2, False),
        "privacy_parameters_details": (TEXT, 3, False),
    },
    "deployment_model": {
        "model_name": (("Local", "Central", "Shuffle", "Federated", "Varies"), 2, False),
        "model_name_details": (TEXT, 3, False),
        "trust_assumptions": (TEXT, 3, False),
        "actors": (TEXT, 3, False),
        "release_type": (("One release", "Many releases"), 2, False),
        "release_type_details": (TEXT, 3, False),
        "data_source_type": (("Static", "Dynamic"), 2, False),
        "data_source_type_details": (TEXT, 2, False),
        "access_type": (("Interactive", "Non-interactive"), 2, False),
        "access_type_details": (TEXT, 3, False),
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": (TEXT, 3, False),
        "mechanisms": (TEXT, 3, False),
        "composition": (TEXT, 3, False),
        "post_processing": (TEXT, 3, False),
        "justification": (TEXT, 3, False),
        "utility": (TEXT, 3, False),
        "additional_information": (TEXT, 1, False),
    },
    "administrative": {
        "evidence_sources": ("evidence", 1, False),
        "status": (
            (
                "Converted",
                "Draft",
                "Pending",
                "Changes Required",
                "Approved",
                "Approved (Update Requested)",
                "Approved (Pending)",
            ),
            1,
            True,
        ),
        "registry_authors": ("authors", 1, True),
        "tier": ("tier", 1, True),
    },
}
EVIDENCE = {
    "Peer-reviewed publication",
    "Formal publication by the deploying organization",
    "Authorized organizational attestation",
    "Other public source",
}
BIBTEX = {"author", "title", "url", "year", "doi", "howpublished", "note", "organization", "publisher"}


def faults(entry: Any, tier: int = 3) -> list[str]:
    """What the schema, and the tier, have against an entry."""
    if set(entry) != {"url_slug", "deployment"} or not isinstance(entry["url_slug"], str):
        return ["the top has a url_slug and a deployment"]
    found = [f"unknown section {name}" for name in set(entry["deployment"]) - set(SCHEMA)]
    for section, fields in SCHEMA.items():
        given = entry["deployment"].get(section, {})
        found += [f"unknown field {section}.{name}" for name in set(given) - set(fields)]
        for name, (kind, level, required) in fields.items():
            if name not in given:
                found += [f"missing {section}.{name}"] if required or level <= tier else []
            elif not fits(kind, given[name]):
                found.append(f"wrong {section}.{name}")
    return found


def fits(kind: Any, value: Any) -> bool:
    if isinstance(kind, tuple):
        return value in kind
    if kind == TEXT:
        return isinstance(value, str) and bool(value)
    if kind == WHOLE:
        return type(value) is int
    if kind == DATE:
        return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None
    if kind == "tier":
        return value in (1, 2, 3)
    if kind == "authors":
        return isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value)
    if kind == "parameters":
        numbers = all(isinstance(number, int | float) and number >= 0 for number in value.values())
        return set(value) <= {"epsilon", "delta", "rho"} and numbers and bool(value)
    if kind == "curators":
        types = ("Government", "Industry", "Nonprofit")
        return bool(value) and all(
            isinstance(c["data_curator_name"], str) and c["data_curator_type"] in types for c in value
        )
    assert kind == "evidence"
    return all(
        re.fullmatch(r"\w+", name)
        and set(source) == {"evidence_source_type", "misc"}
        and source["evidence_source_type"] in EVIDENCE
        and set(source["misc"]) <= BIBTEX
        for name, source in value.items()
    )


FACTS = Publication(
    name="Commuters by mode",
    organization="Town of Aix",
    organization_type="Government",
    description="How many people commute by bus.",
    intended_use='Planning of "bus" lines: no.\nResearch too.',
    region="Aix",
    sector="Government",
    published=date(2026, 11, 1),
    authors=["A. Author"],
    data_domain="Tables with one row per person.",
    people=140_000,
    preprocessing="None.",
    justification="The error is small enough for planning.",
    trust="The town is trusted with the records.",
    actors="The town, and everyone who reads the table.",
    security="Records stay on a server of the town.",
    links=["https://example.org/commuters"],
)
PERSON = Unit("person", column="person_id")
COUNT = Laplace(scale=1, sensitivity=1, grid=Grid(0), exact=True)


def released() -> Release:
    return COUNT.release(1000, name="n", unit=PERSON).clamp(lower=0).bounded("at most 1 record per unit")


def test_a_pure_release_is_valid_at_the_most_detailed_tier() -> None:
    entry = released().statement(FACTS)
    assert faults(entry) == []
    deployment = entry["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert deployment["privacy_loss"]["privacy_unit"] == "person"
    assert "clamped to at least 0" in deployment["implementation"]["post_processing"]
    assert (
        "at most 1 record per unit" in deployment["implementation"]["preprocessing_and_hyperparameter_tuning"]
    )
    assert "grid steps" in deployment["implementation"]["mechanisms"]
    assert "uncharged" in deployment["implementation"]["composition"]
    assert entry["url_slug"] == "commuters-by-mode-town-of-aix-2026"


def test_a_charged_release_names_the_entry() -> None:
    entry = Entry(account="people", number=7, hash="ab12", left="epsilon 0.3")
    stated = released().charged(entry).statement(FACTS)
    assert faults(stated) == []
    composed = stated["deployment"]["implementation"]["composition"]
    assert composed.endswith("Account: people, entry 7, hash ab12.")


def test_what_has_no_error_bars_says_so() -> None:
    made = PermuteAndFlip.calibrate(epsilon=1, sensitivity=1).release([1, 2], unit=PERSON)
    assert "no error bars" in made.statement(FACTS)["deployment"]["implementation"]["utility"]


def test_a_gaussian_release_states_rho_and_epsilon_at_delta() -> None:
    made = Gaussian(scale=4, sensitivity=1, grid=Grid(0), exact=True).release(10, unit=PERSON)
    entry = made.statement(FACTS, delta=1e-5)
    assert faults(entry) == []
    assert entry["deployment"]["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    stated = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    assert stated["rho"] == pytest.approx(1 / 32)
    assert stated["delta"] == 1e-5
    assert stated["epsilon"] == made.loss.epsilon(1e-5).upper


def test_other_losses_are_approximate() -> None:
    made = released()
    lossy = replace(made, receipt=replace(made.receipt, loss=Approximate(1, delta=1e-7)))
    entry = lossy.statement(FACTS)
    assert faults(entry) == []
    assert entry["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    several = replace(made, receipt=replace(made.receipt, loss=made.loss * 3 + Pure(2)))
    assert "4 releases" in several.statement(FACTS)["deployment"]["implementation"]["composition"]
    with pytest.raises(NotSound, match="larger delta"):
        lossy.statement(FACTS, delta=0)


def test_the_check_finds_what_is_wrong() -> None:
    entry = released().statement(FACTS)
    for section in SCHEMA:
        short = {**entry, "deployment": {k: v for k, v in entry["deployment"].items() if k != section}}
        assert faults(short)
    entry["deployment"]["basic"]["publication_date"] = "1/1/2026"
    entry["deployment"]["deployment_model"]["model_name"] = "Cloud"
    entry["deployment"]["administrative"]["surprise"] = 1
    assert sorted(faults(entry)) == [
        "unknown field administrative.surprise",
        "wrong basic.publication_date",
        "wrong deployment_model.model_name",
    ]


def test_seeded_noise_is_not_stated() -> None:
    with noise.seeded(b"a test"):
        made = COUNT.release(1, unit=PERSON)
    with pytest.raises(NotSound, match="seed"):
        made.statement(FACTS)


def test_a_statement_says_who_is_protected() -> None:
    made = COUNT.release(1)
    with pytest.raises(InvalidArgument, match="unit"):
        made.statement(FACTS)
    assert faults(made.statement(FACTS, unit=Unit("household", window="month"))) == []
    with pytest.raises(RelationMismatch):
        made.statement(FACTS, unit=Unit("household", relation="replace"))


@pytest.mark.parametrize(
    "bad",
    [
        {"sector": "Sports"},
        {"organization_type": "State"},
        {"access": "API"},
        {"authors": []},
        {"authors": "A. Author"},
    ],
)
def test_what_the_registry_does_not_know_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        replace(FACTS, **bad)


def test_yaml_reads_back() -> None:
    made = replace(
        FACTS,
        notes="a: b # not a comment\n  indented\n\nend \u2028 'x' \\ \t",
        description=" - x",
        region="yes",
    )
    entry = released().statement(made)
    text = to_yaml(entry)
    assert read(text) == entry
    assert 'data_product_region: "yes"' in text
    assert "epsilon: 1.0\n" in text
    assert ">" not in [line[-1:] for line in text.splitlines()]


def test_small_numbers_are_numbers_in_yaml() -> None:
    made = Gaussian(scale=4, sensitivity=1, grid=Grid(0), exact=True).release(10, unit=PERSON)
    text = to_yaml(made.statement(FACTS))
    assert "delta: 1.0e-06\n" in text
    assert read(text)["deployment"]["privacy_loss"]["privacy_parameters"]["delta"] == 1e-6


def read(text: str) -> Any:
    """The YAML that `to_yaml` writes: nested by two spaces; quoted texts, plain numbers, literal blocks."""
    return block(text.split("\n")[:-1], "")


def block(lines: list[str], indent: str) -> Any:
    found: Any = [] if lines and lines[0].startswith(f"{indent}-") else {}
    while lines and lines[0].startswith(indent):
        match = re.match(r"(- ?|(\w+):)(.*)", lines.pop(0)[len(indent) :])
        assert match is not None
        rest = match[3].strip()
        inner = []
        while lines and (lines[0].startswith(f"{indent}  ") or not lines[0]):
            inner.append(lines.pop(0))
        if rest == "|-":
            value: Any = "\n".join(line[len(indent) + 2 :] for line in inner)
        else:
            value = scalar(rest) if rest else block(inner, f"{indent}  ")
        if isinstance(found, list):
            found.append(value)
        else:
            found[match[2]] = value
    return found


def scalar(text: str) -> Any:
    if text.startswith('"'):
        return re.sub(
            r'\\(?:U([0-9a-f]{8})|(["\\]))', lambda m: chr(int(m[1], 16)) if m[1] else m[2], text[1:-1]
        )
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    # What YAML 1.1 reads as a number: a point is needed before an exponent.
    assert re.fullmatch(r"-?\d+\.\d*(e[-+]\d+)?", text), text
    return float(text)
