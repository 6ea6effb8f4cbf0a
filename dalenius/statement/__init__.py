"""A release as an entry of the public registry of deployments, at its most detailed tier.

The schema is that of the registry's data (github.com/opendp/deployments-registry-data,
schemas/deployments-schema.yaml, commit 057e5d81, of autumn 2026). Tier 1 says what was published and by whom,
tier 2 the variant, the unit, the parameters and the model, tier 3 what a reviewer needs: domain, mechanisms,
defences against floating-point attacks, composition, post-processing, trust. What only the publisher knows
is a `Publication`; the rest follows from the receipt. Figures are rounded to the side that promises less.
"""

from dalenius.statement.entry import Made, describe
from dalenius.statement.publication import Publication
from dalenius.statement.yaml import to_yaml

__all__ = ["Made", "Publication", "describe", "to_yaml"]
