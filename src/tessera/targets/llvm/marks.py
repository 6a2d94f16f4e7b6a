"""Attributes of ops that passes set for emitters: what a result may be computed by."""

from __future__ import annotations

BRIEF = "brief"
"""Marks a function that is wanted in its brief form: what it gives need not be more exact."""
ROUNDED = "rounded"
"""Marks a multiple that is rounded before anything is added to it."""
