"""The walks with all rows of the table."""

from __future__ import annotations

from tessera.transforms.derivatives import (
    arrangement_rules,
    control_rules,
    customs,
    elementwise_rules,
    indexing_rules,
    other_rules,
    reduction_rules,
)
from tessera.transforms.derivatives.linearize import linearize, transpose
from tessera.transforms.derivatives.rules import RULES

ROWS = (arrangement_rules, control_rules, customs, elementwise_rules, indexing_rules, other_rules, reduction_rules)
"""The modules whose rows are in the table."""

__all__ = ["ROWS", "RULES", "linearize", "transpose"]
