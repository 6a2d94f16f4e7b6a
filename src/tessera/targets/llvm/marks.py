"""Attributes of ops that passes set for emitters: what a result may be computed by."""

from __future__ import annotations

BRIEF = "brief"
"""Marks a function that is wanted in its brief form: what it gives need not be more exact."""
LOOSE = "loose"
"""Marks a sigmoid that may be off by about 1e-8, however small it is."""
TOGETHER = "together"
"""Marks functions of many elements that may share what takes long. Reciprocals of numbers from 1 to 2^31 do."""
ROUNDED = "rounded"
"""Marks a multiple that is rounded before anything is added to it."""
SHORT = "short"
"""Marks a function that is to be compiled soon: its code is short."""
