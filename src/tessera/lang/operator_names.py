"""The names of all operators, in a file that costs nothing to import: `tessera` hands them on when first used."""

from __future__ import annotations

NAMES: tuple[str, ...] = ()
"""Each is in `tessera.lang.operators`, and at the top of the package; it wins over what is there under its name."""
