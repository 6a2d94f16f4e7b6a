"""Checking one op. Whether it is as its declaration says depends on types and properties alone, and is remembered.

xDSL takes about 50 µs for that, and compilers make the same few kinds of ops over and over. What depends on where an op
stands, its traits and what it checks by itself, is looked at every time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, OpDef
from xdsl.traits import IsTerminator, NoTerminator, OpTrait
from xdsl.utils.exceptions import VerifyException

_MOST_REMEMBERED = 1 << 14
_GOOD: set[tuple[object, ...]] = set()
"""Kinds of ops that were found to be as declared."""


class _Rules(NamedTuple):
    """What ops of a class are checked by."""

    definition: OpDef
    declared: tuple[str, ...]
    """Attributes that belong to the declaration; others may be anything."""
    traits: tuple[OpTrait, ...]
    own: Callable[[Operation], None] | None


@cache
def _rules(kind: type[Operation]) -> _Rules | None:
    """None for ops that are not declared, or not in the way that xDSL has it: these check themselves."""
    written: Any = kind.verify_
    if not issubclass(kind, IRDLOperation) or not getattr(written, "__closure__", None):
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


def check(op: Operation) -> None:
    """Raises a `VerifyException` where an op is not what it should be; ops in it are checked on their own."""
    rules = _rules(op.__class__)
    if rules is None or op.successors:
        op.verify(verify_nested_ops=False)
        return
    _check_end(op)
    key = None if op.regions else _key(op, rules)
    if key is None or key not in _GOOD:
        rules.definition.verify(op)
        if key is not None:
            if len(_GOOD) >= _MOST_REMEMBERED:
                _GOOD.clear()
            _GOOD.add(key)
    else:
        for trait in rules.traits:
            trait.verify(op)
    if rules.own is not None:
        rules.own(op)


def _key(op: Operation, rules: _Rules) -> tuple[object, ...] | None:
    """All that a declaration speaks of; None where that cannot be compared."""
    attributes = op.attributes
    key = (
        op.__class__,
        *[operand.type for operand in op.operands],
        None,
        *[result.type for result in op.results],
        *op.properties.items(),
        *[(name, attributes.get(name)) for name in rules.declared],
    )
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _check_end(op: Operation) -> None:
    """The last op of a block ends it."""
    block = op.parent
    region = None if block is None else block.parent
    if block is None or region is None or block.last_op is not op or op.has_trait(IsTerminator):
        return
    holder = region.parent
    several = len(region.blocks) > 1
    if several or (holder is not None and not holder.has_trait(NoTerminator)):
        where = "multi-block region" if several else "single-block region"
        raise VerifyException(f"Operation {op.name} terminates block in {where} but is not a terminator")
