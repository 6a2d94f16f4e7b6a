"""Checking one op. Whether it is as its declaration says depends on types and properties alone, and is remembered.

xDSL takes about 50 µs for that, and compilers make the same few kinds of ops over and over. What depends on where an op
stands, its traits and what it checks by itself, is looked at every time. Causal attention for sm_90a takes 15 % longer
to compile without.

xDSL has no name for what an op class checks by itself: it is found inside of the function that xDSL makes of it. That
is for versions that are known (`xdsl_versions.py`); with others every op is checked by xDSL.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, OpDef
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, OpTrait
from xdsl.utils.exceptions import VerifyException

from tessera.ir.common import xdsl_versions

OpT = TypeVar("OpT", bound=Operation)

_MOST_REMEMBERED = 1 << 14
_GOOD: set[tuple[object, ...]] = set()
"""Kinds of ops that were found to be as declared."""


class _Rules(NamedTuple):
    """The checks of an op class."""

    definition: OpDef
    declared: tuple[str, ...]
    """Attributes that belong to the declaration; others may be anything."""
    traits: tuple[OpTrait, ...]
    own: Callable[[Operation], None] | None


@cache
def _rules(kind: type[Operation]) -> _Rules | None:
    """None for ops that are not declared, or not in the way that a known xDSL has it: these check themselves."""
    written: Any = kind.verify_
    if not issubclass(kind, IRDLOperation) or not getattr(written, "__closure__", None) or not xdsl_versions.is_known():
        return None
    inside = {
        name: cell.cell_contents for name, cell in zip(written.__code__.co_freevars, written.__closure__, strict=True)
    }
    definition = inside.get("op_def")
    if not isinstance(definition, OpDef) or definition is not kind.get_irdl_definition():
        return None
    declared = {*definition.attributes}
    declared |= {name for option in definition.options if (name := getattr(option, "attribute_name", None)) is not None}
    traits = tuple(one for one in definition.traits if type(one).verify is not OpTrait.verify)
    return _Rules(definition, tuple(declared), traits, inside.get("custom_verify"))


_OPERANDS: Callable[[Operation], Sequence[SSAValue]] = attrgetter(
    "_operands" if xdsl_versions.is_known() else "operands"
)


def operands_of(op: Operation) -> Sequence[SSAValue]:
    """An op's operands. What xDSL shows of them takes ten times as long to go through as what is behind it."""
    return _OPERANDS(op)


def check(op: Operation) -> None:
    """Raises a `VerifyException` where an op is not what it should be; ops in it are checked on their own.

    That values are defined where they are used has been seen before.
    """
    rules = _rules(op.__class__)
    if rules is None or op.successors or _is_last(op):
        op.verify(verify_nested_ops=False)
        return
    key = _key(op, rules)
    if key is None or key not in _GOOD:
        rules.definition.verify(op)
        if key is not None:
            if len(_GOOD) >= _MOST_REMEMBERED:
                _GOOD.clear()
            _GOOD.add(key)
    else:
        for trait in rules.traits:
            if not isinstance(trait, IsolatedFromAbove) or not _is_alone(op):
                trait.verify(op)
    if rules.own is not None:
        rules.own(op)


def _key(op: Operation, rules: _Rules) -> tuple[object, ...] | None:
    """All that a declaration speaks of; None where that cannot be compared."""
    key: list[object] = [op.__class__]
    key += [operand.type for operand in operands_of(op)]
    key.append(None)
    key += [result.type for result in op.results]
    key += op.properties.items()
    if rules.declared:
        key += [(name, op.attributes.get(name)) for name in rules.declared]
    for region in op.regions:
        blocks = region.blocks
        key += [len(blocks), *([one.type for one in blocks[0].args] if blocks else ())]
    made = tuple(key)
    try:
        hash(made)
    except TypeError:
        return None
    return made


def _is_last(op: Operation) -> bool:
    """Whether an op ends a block that it may not be fit to end."""
    if op.parent is None or op.next_op is not None or op.has_trait(IsTerminator):
        return False
    holder = op.parent_op()
    return holder is None or not holder.has_trait(NoTerminator)


def _is_alone(op: Operation) -> bool:
    """Whether there are no values around an op that what is in it could use."""
    block, holder = op.parent, op.parent_op()
    if block is None or not isinstance(holder, ModuleOp) or holder.parent is not None:
        return False
    return not block.args and not any(other.results for other in block.ops)


def ops_of(module: str) -> tuple[type[IRDLOperation], ...]:
    """The ops that a module defines, in the order in which it does."""
    defined = [kind for kind in vars(sys.modules[module]).values() if isinstance(kind, type) and "name" in vars(kind)]
    return tuple(kind for kind in defined if issubclass(kind, IRDLOperation) and kind.__module__ == module)


def enclosing(op: Operation, kind: type[OpT]) -> OpT | None:
    """The nearest op of a kind that another one is a part of."""
    found = op.parent_op()
    while found is not None and not isinstance(found, kind):
        found = found.parent_op()
    return found


def around(op: Operation, kind: type[OpT], what: str) -> OpT:
    """The op of a kind that another one is a part of; refuses an op that is not: it has to be a part of `what`."""
    if (found := enclosing(op, kind)) is None:
        raise VerifyException(f"{op.name} is a part of {what}")
    return found
