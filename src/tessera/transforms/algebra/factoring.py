"""Factors of elements, drawn out of sums, maxima and masks: a·x + b·max(x, 0) = a · (x + b/a · max(x, 0)).

What comes last often takes a factor for nothing: a maximum along rows multiplies rows instead of elements, and the
exponential of a difference has a product in it anyway. So every value on the way there is seen as `factor · core +
shift`, and only the core is computed. Numbers are rounded elsewhere than before; only what ends in functions that a
mark says need not be exact is rewritten. This supposes that products of data are far from the largest numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import copysign, isinf, isnan

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tessera.dtypes.types import f32
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype
from tessera.transforms.algebra.masks import constant_of
from tessera.transforms.core.rewriting import adopt_location
from tessera.transforms.core.tile_ops import TileOps

_LEAST, _MOST = 2.0**-20, 2.0**20
"""Sizes of factors that are worth drawing out: products stay far from the ends of the format."""
_MAXIMA = ("max", "top", "min")
_OTHER = {"max": "min", "min": "max"}
_EXPONENTIALS = ("exp", "sigmoid")


def gather_factors(function: tile.FuncOp, mark: str) -> frozenset[SSAValue]:
    """Rewrites what ends in maxima along rows and in functions with a mark. Returns the products it wrote."""
    gatherer = _Gatherer(mark)
    for op in list(function.body.walk()):
        if isinstance(op, tile.EwOp) and is_plain(op) and gatherer.takes(op.result):
            gatherer.rewrite(op)
            if op.fn.data == "cast" and tile_dtype(op.operands_[0]).is_integer:
                # Positions need not be rounded twice as exactly as all that is computed with them.
                op.attributes[mark] = UnitAttr()
        elif isinstance(op, tile.ReduceOp) and op.kind.data in _MAXIMA and tile_dtype(op.operand) is f32:
            gatherer.reduce(op)
    remove_unused(function)
    return frozenset(gatherer.products)


@dataclass(frozen=True)
class Form:
    """A tile as factor · core + shift. What is one number everywhere has no core."""

    core: SSAValue | None
    factor: float = 1.0
    shift: float = 0.0

    @property
    def is_itself(self) -> bool:
        return self.factor == 1.0 and self.shift == 0.0


class _Gatherer(TileOps):
    """The forms of values, and new ops next to those that they stand for."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self.mark = mark
        self.products: set[SSAValue] = set()
        self.at: Operation
        self._forms: dict[SSAValue, Form] = {}
        self._takes: dict[SSAValue, bool] = {}

    def form(self, value: SSAValue) -> Form:
        if value not in self._forms:
            number = constant_of(value)
            self._forms[value] = Form(value) if number is None else Form(None, shift=number)
        return self._forms[value]

    def rewrite(self, op: tile.EwOp) -> None:
        """Replaces an op by factor · core + shift."""
        rule = _RULES.get(op.fn.data)
        if rule is None or self._is_last(op):
            return
        self.at = op
        form = rule(self, op, [self.form(value) for value in op.operands_])
        if form is None or form.core is None or not _LEAST <= abs(form.factor) <= _MOST or abs(form.shift) > _MOST:
            return
        if form.shift and any(self._settles(use.operation) for use in op.result.uses):
            moved = self.ew("add", form.core, self.filled(form.shift / form.factor, form.core))
            form = Form(moved, form.factor)
        if form.shift == 0.0 and op.fn.data == "mul" and form.core in op.operands_:
            # It is that already.
            self._forms[op.result] = form
            return
        made = self._written(form)
        made.name_hint = op.result.name_hint
        op.result.replace_all_uses_with(made)
        self._takes[made] = True
        self._forms[made] = form

    def reduce(self, op: tile.ReduceOp) -> None:
        """The maximum of cores, and what it is multiplied with and moved by."""
        form = self.form(op.operand)
        if form.core is None or form.factor <= 0 or form.is_itself:
            return
        self.at = op
        top = tile.ReduceOp(op.kind.data, form.core, op.axis.value.data)
        self.add(top)
        op.result.replace_all_uses_with(self._written(Form(top.result, form.factor, form.shift)))

    def _written(self, form: Form) -> SSAValue:
        core = form.core
        assert core is not None
        found = core
        if form.factor != 1.0:
            found = self.ew("mul", found, self.filled(form.factor, core))
            self.products.add(found)
        if form.shift != 0.0:
            found = self.ew("add", found, self.filled(form.shift, core))
        return found

    def add(self, op: Operation) -> SSAValue:
        """A new op behind the last one."""
        adopt_location([op], self.at)
        Rewriter.insert_op(op, InsertPoint.after(self.at))
        self.at = op
        return op.results[0]

    def scaled(self, value: SSAValue, factor: float) -> SSAValue:
        """A tile times a number; what was repeated is multiplied before."""
        if factor == 1.0:
            return value
        owner = value.owner
        if isinstance(owner, tile.BroadcastOp | tile.ExpandOp):
            at = self.at
            self.at = owner
            inner = self.scaled(owner.operand, factor)
            again = owner.clone()
            again.operands[0] = inner
            found = self.add(again)
            self.at = at
            return found
        found = self.ew("mul", value, self.filled(factor, value))
        self.products.add(found)
        return found

    # What takes a factor

    def takes(self, value: SSAValue) -> bool:
        """Whether all uses of a value take a factor of it for nothing, or hand it on to such."""
        if value not in self._takes:
            self._takes[value] = False
            uses = list(value.uses)
            self._takes[value] = bool(uses) and all(self._taken(use.operation, value) for use in uses)
        return self._takes[value]

    def _taken(self, user: Operation, value: SSAValue) -> bool:
        if isinstance(user, tile.ReduceOp):
            return user.kind.data in _MAXIMA
        if not isinstance(user, tile.EwOp) or not is_plain(user):
            return False
        name, result = user.fn.data, user.result
        if name in _EXPONENTIALS:
            return self.mark in user.attributes
        if self._is_last(user):
            return True
        if name == "select":
            return value is not user.operands_[0] and self.takes(result)
        return name in _RULES and self.takes(result)

    def _settles(self, user: Operation) -> bool:
        """Whether a use has no room for shifts."""
        named = isinstance(user, tile.EwOp) and user.fn.data in ("mul", "add", "sub", "max", "min", "neg")
        return not named or (isinstance(user, tile.EwOp) and self._is_last(user))

    def _is_last(self, op: tile.EwOp) -> bool:
        """Whether an op makes differences for exponentials: the factor of these goes into both sides of them."""
        users = [use.operation for use in op.result.uses]
        return op.fn.data == "sub" and all(
            isinstance(user, tile.EwOp) and user.fn.data in _EXPONENTIALS and self.mark in user.attributes
            for user in users
        )


def is_plain(op: tile.EwOp) -> bool:
    """Whether an op computes in f32 and rounds to nearest."""
    return op.policy is None and tile_dtype(op.result) is f32 and op.seed is None


# What ops make of forms. None: the op stays as it is.

_Rule = Callable[[_Gatherer, tile.EwOp, list[Form]], Form | None]


def _of_product(gatherer: _Gatherer, op: tile.EwOp, forms: list[Form]) -> Form | None:
    a, b = forms
    if b.core is None:
        return _times(a, b.shift)
    if a.core is None:
        return _times(b, a.shift)
    if a.shift or b.shift or a.factor * b.factor == 1.0:
        return None
    return Form(gatherer.ew("mul", a.core, b.core), a.factor * b.factor)


def _times(form: Form, number: float) -> Form | None:
    return Form(form.core, form.factor * number, form.shift * number) if form.core is not None and number else None


def _of_sum(gatherer: _Gatherer, op: tile.EwOp, forms: list[Form]) -> Form | None:
    a, b = forms
    if op.fn.data == "sub":
        b = Form(b.core, -b.factor, -b.shift)
    if a.core is None or b.core is None:
        both = a if b.core is None else b
        return Form(both.core, both.factor, a.shift + b.shift)
    if abs(a.factor) == 1.0 and abs(b.factor) != 1.0:
        a, b = b, a
    shift = a.shift + b.shift
    if abs(a.factor) == 1.0:
        # Nothing to draw out but shifts.
        return None if shift == 0.0 else Form(_sum(gatherer, a, b, 1.0), 1.0, shift)
    if abs(b.factor) != 1.0:
        return Form(_sum(gatherer, a, b, a.factor), a.factor, shift)
    # The other has no factor of its own; but one of its own factors may be the same for many elements.
    product = b.core.owner if b.core is not None else None
    if not isinstance(product, tile.EwOp) or product.fn.data != "mul" or not is_plain(product):
        return None
    for small, large in (product.operands_, product.operands_[::-1]):
        if isinstance(small.owner, tile.BroadcastOp):
            smaller = gatherer.scaled(small, b.factor / a.factor)
            core = gatherer.ew("mul", smaller, large)
            gatherer.products.add(core)
            assert a.core is not None
            return Form(gatherer.ew("add", a.core, core), a.factor, shift)
    return None


def _sum(gatherer: _Gatherer, a: Form, b: Form, factor: float) -> SSAValue:
    """(a + b) / factor, without shifts; `factor` is a's, or 1."""
    assert a.core is not None
    assert b.core is not None
    parts = a.factor / factor, b.factor / factor
    if parts == (1.0, -1.0):
        return gatherer.ew("sub", a.core, b.core)
    first = a.core if parts[0] == 1.0 else gatherer.scaled(a.core, parts[0])
    second = b.core if parts[1] == 1.0 else gatherer.scaled(b.core, parts[1])
    return gatherer.ew("add", first, second)


def _of_extreme(gatherer: _Gatherer, op: tile.EwOp, forms: list[Form]) -> Form | None:
    a, b = forms if forms[0].core is not None else forms[::-1]
    if a.core is None or a.is_itself:
        return None
    if b.core is None:
        other = _moved_back(a, b.shift)
        limit = None if other is None else gatherer.filled(other, a.core)
    else:
        limit = b.core if (a.factor, a.shift) == (b.factor, b.shift) else None
    if limit is None:
        return None
    name = op.fn.data if a.factor > 0 else _OTHER[op.fn.data]
    return Form(gatherer.ew(name, a.core, limit), a.factor, a.shift)


def _of_choice(gatherer: _Gatherer, op: tile.EwOp, forms: list[Form]) -> Form | None:
    mask, (_, a, b) = op.operands_[0], forms
    if a.core is None or a.is_itself or b.core is not None:
        return None
    other = _moved_back(a, b.shift)
    if other is None:
        return None
    return Form(gatherer.ew("select", mask, a.core, gatherer.filled(other, a.core)), a.factor, a.shift)


def _moved_back(form: Form, number: float) -> float | None:
    """The number that a form maps to this one; None where that is too large to be certain."""
    if isnan(number):
        return None
    if isinf(number):
        return copysign(number, number * form.factor)
    found = (number - form.shift) / form.factor
    return found if abs(found) <= _MOST**3 else None


def _of_size(gatherer: _Gatherer, op: tile.EwOp, forms: list[Form]) -> Form | None:
    (a,) = forms
    if a.core is None or a.shift or a.factor == 1.0:
        return None
    return Form(gatherer.ew("abs", a.core), abs(a.factor))


def _of_opposite(gatherer: _Gatherer, op: tile.EwOp, forms: list[Form]) -> Form | None:
    (a,) = forms
    return None if a.is_itself else _times(a, -1.0)


_RULES: Mapping[str, _Rule] = {
    "mul": _of_product,
    "add": _of_sum,
    "sub": _of_sum,
    "max": _of_extreme,
    "min": _of_extreme,
    "select": _of_choice,
    "abs": _of_size,
    "neg": _of_opposite,
}


def remove_unused(function: tile.FuncOp) -> None:
    """Ops on tiles that nothing uses any more, and their constants; last ones first."""
    kinds = tile.EwOp | tile.BroadcastOp | tile.ExpandOp | tile.FullOp | tile.ReduceOp | arith.ConstantOp
    for op in reversed(list(function.body.walk())):
        if isinstance(op, kinds) and not any(op.results[0].uses):
            op.detach()
            op.erase()
