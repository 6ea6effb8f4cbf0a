"""The entry itself: what the receipt states and what the publisher knows, in the fields of the registry."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import InvalidArgument, NotSound, RelationMismatch
from dalenius.losses.composition import Composition
from dalenius.losses.loss import Loss
from dalenius.privacy.unit import Unit
from dalenius.statement.publication import Publication

_NEIGHBOURS = {
    "add_remove": "one has all records of one such unit more than the other",
    "replace": "the records of one such unit differ between them, and the number of units is the same",
    "zero_out": "the records of one such unit are blank in one of them, and the number of units is the same",
}


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a receipt states of how a release was made."""

    loss: Loss
    delta: Fraction
    unit: Unit | None
    mechanism: str
    numerics: str
    bounds: Sequence[str]
    postprocessing: Sequence[str]
    charged: str
    confidence: Fraction | None
    tainted: bool


def describe(made: Made, publication: Publication) -> dict[str, Any]:
    """The entry. Refused for seeded noise, without a unit, and where the loss is for another relation."""
    unit = _unit(made)
    variant, parameters = _parameters(made)
    p = publication
    return {
        "url_slug": _slug(f"{p.name}-{p.organization}-{p.published.year}"),
        "deployment": {
            "basic": {
                "name": p.name,
                "data_curators": [
                    {"data_curator_name": p.organization, "data_curator_type": p.organization_type}
                ],
                "description": p.description,
                "intended_use": p.intended_use,
                "data_product_type": p.product,
                "data_product_region": p.region,
                "data_product_sector": p.sector,
                "publication_date": p.published.isoformat(),
            },
            "dp_variant": {
                "variant_name": variant,
                "data_domain": p.data_domain,
                "unprotected_quantities": p.unprotected,
            },
            "privacy_loss": {
                "privacy_unit": unit.entity + (f"-{unit.window}" if unit.window else ""),
                "privacy_unit_details": _neighbours(unit),
                "number_of_privacy_units": p.people,
                "privacy_parameters": parameters,
                "privacy_parameters_details": _details(made),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": f"{p.organization} holds the records and adds the noise.",
                "trust_assumptions": p.trust,
                "actors": p.actors,
                "release_type": p.release_type,
                "release_type_details": p.release_details,
                "data_source_type": p.source_type,
                "data_source_type_details": p.source_details,
                "access_type": p.access,
                "access_type_details": p.access_details,
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _listed([p.preprocessing, *made.bounds]),
                "mechanisms": _mechanisms(made, p),
                "composition": _composition(made),
                "post_processing": _listed(made.postprocessing) or "None.",
                "justification": p.justification,
                "utility": _utility(made),
                "additional_information": p.notes or "None.",
            },
            "administrative": {
                "evidence_sources": {
                    f"source_{i}": {
                        "evidence_source_type": p.evidence,
                        "misc": {"title": p.name, "url": link},
                    }
                    for i, link in enumerate(p.links, 1)
                },
                "status": "Draft",
                "registry_authors": list(p.authors),
                "tier": 3,
            },
        },
    }


def _unit(made: Made) -> Unit:
    if made.tainted:
        raise NotSound(
            "This release was made with seeded noise, which protects nobody.",
            remedy="Release again without a seed, then state that release.",
        )
    if made.unit is None:
        raise InvalidArgument(
            "A statement says who is protected.", remedy='Pass unit, such as unit=Unit("person").'
        )
    if made.unit.relation != made.loss.relation:
        raise RelationMismatch(
            f"The loss is for {made.loss.relation} neighbours, the unit for {made.unit.relation}.",
            remedy=f"Pass a unit with relation={made.loss.relation!r}.",
        )
    return made.unit


def _parameters(made: Made) -> tuple[str, dict[str, float]]:
    epsilon = made.loss.epsilon(made.delta).upper
    if math.isinf(epsilon):
        raise NotSound("No epsilon holds at this delta.", remedy="Pass a larger delta, or leave it out.")
    if made.delta == 0:
        return "Pure DP", {"epsilon": epsilon}
    stated = {"epsilon": epsilon, "delta": float(made.delta)}
    rho = made.loss.zcdp().upper
    if math.isinf(rho) or made.loss.epsilon(0).upper < math.inf:
        return "Approximate DP", stated
    return "Zero-concentrated DP", stated | {"rho": rho}


def _neighbours(unit: Unit) -> str:
    who = f"{unit.entity} (column {unit.column})" if unit.column else f"{unit.entity} (each record is one)"
    span = f" within one {unit.window}" if unit.window else ""
    return (
        f"The unit is one {who}{span}. Two data sets are neighbours ({unit.relation}) where "
        f"{_NEIGHBOURS[unit.relation]}. The guarantee is for any two neighbours."
    )


def _details(made: Made) -> str:
    exact = made.loss.to_json()
    shown = exact if len(exact) <= 1000 else f"{exact[:1000]}…"
    return (
        "The parameters bound the whole privacy loss of this release; they are rounded up. The loss itself, "
        f"from which every other figure follows, is described as: {shown}"
    )


def _mechanisms(made: Made, publication: Publication) -> str:
    return _listed(
        [
            f"Mechanism: {made.mechanism[:1000]}",
            f"Implemented in the Python library Dalenius, version {_version()}; its theorem and its attack "
            "are in the library's documentation and tests.",
            f"Floating point: {made.numerics}. No floating-point noise is added to floating-point values.",
            "Randomness: AES-256 in counter mode, keyed by the operating system; samplers are exact for "
            "rational parameters.",
            "Platform: how long a computation takes is outside the guarantee.",
            f"Security of the data: {publication.security}",
        ]
    )


def _composition(made: Made) -> str:
    if isinstance(made.loss, Composition):
        count = sum(times for _, times in made.loss.terms)
        what = (
            f"{count} releases composed adaptively; their joint loss is evaluated numerically, with bounds."
        )
    else:
        what = "One mechanism, whose whole profile is known; nothing is composed within the release."
    return f"{what} Account: {made.charged}."


def _utility(made: Made) -> str:
    if made.confidence is None:
        return "The release has no error bars: its error depends on the data."
    return (
        f"Each number has an error bar for what the noise does to it, which holds with probability "
        f"{float(made.confidence):g} or more. Bounds applied to the data beforehand are not part of it."
    )


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dalenius")
    except PackageNotFoundError:
        return "unknown"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _listed(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
