"""Attributes of ops that passes set for emitters: what a result may be computed by."""

from __future__ import annotations

BRIEF = "brief"
"""Marks a function that is wanted in its brief form: what it gives need not be more exact."""
ROUNDED = "rounded"
"""Marks a multiple that is rounded before anything is added to it."""
LOOSE = "loose"
"""Marks a brief function that may be off by 1e-5 of its result: what it gives is rounded to half of the digits."""
SPREAD = "spread"
"""Marks a loose function of many elements, every second of which is to be computed by arithmetic alone."""
