"""Attributes of ops that passes set for emitters: which forms of a function may be used."""

from __future__ import annotations

APPROXIMATE = "approximate"
"""Marks a function whose approximate form suffices: its users need no more bits."""
LOOSE = "loose"
"""Marks a sigmoid that may be off by about 1e-8, however small it is."""
TOGETHER = "together"
"""Marks functions of many elements that may share what takes long. Reciprocals of numbers from 1 to 2^31 do."""
BITWISE = "bitwise"
"""Marks a cast of narrow whole numbers that is better made of their bits than by the unit that converts numbers."""
ROUNDED = "rounded"
"""Marks a multiple that is rounded before anything is added to it."""
SHORT = "short"
"""Marks a function for fast compiles: its code is short."""
