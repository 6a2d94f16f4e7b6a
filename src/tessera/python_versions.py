"""The versions of Python that are supported: a table of tested ones, and the warning at import on others.

Calls of kernels and jitted functions go through machine code that works on CPython's own objects. That is for Pythons
whose objects are known. Everywhere else the same is done in Python, which takes a few microseconds more a call.
"""

from __future__ import annotations

import sys
import warnings

from tessera.errors import TesseraWarning

TESTED = ((3, 11), (3, 12), (3, 13))
"""Versions of CPython that all tests run on."""
_SLOWER = "calls go through Python instead of machine code, which takes a few microseconds more each"


def is_free_threaded() -> bool:
    """Whether this Python was built to run without its global lock; its objects are laid out differently."""
    return "t" in getattr(sys, "abiflags", "")  # asking sysconfig takes a millisecond


def has_lock() -> bool:
    """Whether one thread at a time runs Python code."""
    asked = getattr(sys, "_is_gil_enabled", None)
    return True if asked is None else bool(asked())


def is_known() -> bool:
    """Whether machine code may look at objects here: a tested CPython, not free-threaded, not tracing references."""
    return (
        sys.implementation.name == "cpython"
        and sys.version_info[:2] in TESTED
        and not is_free_threaded()
        and not hasattr(sys, "getobjects")
    )


def remarks() -> list[str]:
    """Notes for users of this Python: none on one that tests run on."""
    name, version = sys.implementation.name, ".".join(map(str, sys.version_info[:2]))
    first, last = (".".join(map(str, one)) for one in (TESTED[0], TESTED[-1]))
    found: list[str] = []
    if name != "cpython":
        found.append(f"Tessera is tested on CPython, this is {name}: {_SLOWER}")
    elif sys.version_info[:2] not in TESTED:
        found.append(f"Tessera is tested on Python {first} to {last}, this is {version}: {_SLOWER}")
    if is_free_threaded():
        found.append(f"this is a free-threaded build of Python: {_SLOWER}")
    if not has_lock():
        found.append(
            "Python runs without its global lock here, which Tessera is not tested with: call it from one thread at a "
            "time, or set PYTHON_GIL=1"
        )
    return found


def tell() -> None:
    """Says so once, where the package is imported."""
    for remark in remarks():
        warnings.warn(remark, TesseraWarning, stacklevel=3)
