"""Nodes of the IR as plain classes: `isinstance` looks at an object's own class only.

xDSL's operations, values and attributes are abstract base classes, for which `isinstance` calls a function in Python
that looks for registered subclasses: a microsecond each time. There are none, and passes call it a hundred thousand
times for a kernel. A class that is defined after `make_plain` is plain from the start.

This changes another package's classes for the whole process, so it is done for versions of xDSL only that are known
(`xdsl_versions.py`). With others the classes stay what they are, and only time is lost: causal attention for sm_90a,
from its Python to PTX, took 0.421 s of processor time with this and 0.444 s without, the best of thirty compiles each
in processes started alternately (5 %).
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator

from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.scf import Scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tessera.ir.common import xdsl_versions


class PlainMeta(ABCMeta):
    """Abstract methods must be given, as in other abstract classes; all else is as in any class."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def make_plain() -> None:
    """Changes xDSL's classes, where its version is known: what all are made of, and the dialects that are used here."""
    if not xdsl_versions.is_known():
        return
    roots = [Attribute, Block, Operation, Region, SSAValue]
    for dialect in (Arith, Builtin, Scf):
        roots += [*dialect.operations, *dialect.attributes]
    for found in {one for root in roots for one in _family(root)}:
        # Classes of another kind, such as protocols, have reasons of their own; so has what is not xDSL's.
        if type(found) is ABCMeta and found.__module__.startswith("xdsl."):
            found.__class__ = PlainMeta


def _family(root: type) -> Iterator[type]:
    """A class, those that it was made of, and those that were made of it."""
    yield from root.__mro__
    for child in type.__subclasses__(root):
        yield from _family(child)
