"""The versions of xDSL whose insides are known: elsewhere only its public names are used, which takes more time."""

from __future__ import annotations

import xdsl

KNOWN = ("0.74.0",)
"""Versions with which `plain_classes.py` and `checking.py` were tested."""


def is_known() -> bool:
    """Whether this xDSL is one of these."""
    return str(xdsl.__version__) in KNOWN  # an object that looks it up when it is first asked
