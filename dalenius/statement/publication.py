"""`Publication`: what only the publisher knows, in the words the registry allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from dalenius.errors import InvalidArgument

CURATORS = ("Government", "Industry", "Nonprofit")
PRODUCTS = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
RELEASES, SOURCES, ACCESS = (
    ("One release", "Many releases"),
    ("Static", "Dynamic"),
    ("Non-interactive", "Interactive"),
)
EVIDENCE = (
    "Peer-reviewed publication",
    "Formal publication by the deploying organization",
    "Authorized organizational attestation",
    "Other public source",
)


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What only the publisher knows. `people` is about how many units the data hold, a public figure."""

    name: str
    organization: str
    organization_type: str
    description: str
    intended_use: str
    region: str
    sector: str
    published: date
    authors: Sequence[str]
    data_domain: str
    people: int
    preprocessing: str
    justification: str
    trust: str
    actors: str
    security: str
    product: str = "Summary statistics"
    unprotected: str = "None but the schema and the parameters stated here."
    release_type: str = "One release"
    release_details: str = "No further release from these data is planned."
    source_type: str = "Static"
    source_details: str = "The data no longer change."
    access: str = "Non-interactive"
    access_details: str = "The data product is published as it is; nobody queries the data themselves."
    links: Sequence[str] = ()
    evidence: str = "Formal publication by the deploying organization"
    notes: str = ""

    def __post_init__(self) -> None:
        for field, allowed in _ALLOWED.items():
            if getattr(self, field) not in allowed:
                raise InvalidArgument(
                    f"{field} must be one of {', '.join(allowed)}.", remedy=f"Pass {field} as one of these."
                )
        if isinstance(self.authors, str) or not self.authors:
            raise InvalidArgument("authors must name who wrote the entry.", remedy="Pass a list of names.")


_ALLOWED = {
    "organization_type": CURATORS,
    "product": PRODUCTS,
    "sector": SECTORS,
    "release_type": RELEASES,
    "source_type": SOURCES,
    "access": ACCESS,
    "evidence": EVIDENCE,
}
