"""Legalizes a tile function for GPUs: checks, plain dots, approximate functions, and attributes for the emitter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import TensorType, UnitAttr
from xdsl.ir import Operation, SSAValue

from tessera.dtypes.types import DType, bf16, f8e4m3, f8e5m2, f16
from tessera.errors import CompileError
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import tile_dtype, tile_type
from tessera.targets.cuda.lower.plain_dots import make_dots_plain
from tessera.targets.cuda.lower.reduce_late import ReduceLate
from tessera.targets.cuda.lower.shared_reciprocals import share_reciprocals
from tessera.targets.llvm.emitter_attributes import APPROXIMATE, LOOSE, TOGETHER
from tessera.targets.llvm.prints import unrecorded
from tessera.targets.llvm.round_multiples import RoundMultiples
from tessera.targets.llvm.tolerances import Tolerances
from tessera.transforms.algebra.degenerate_matmuls import DegenerateMatmuls
from tessera.transforms.algebra.factoring import gather_factors
from tessera.transforms.algebra.multiples import MarkMultiples, mark
from tessera.transforms.algebra.odd_functions import use_sigmoids, use_tails
from tessera.transforms.algebra.powers_of_two import use_powers_of_two
from tessera.transforms.algebra.scaled_maxima import ScaleMaxima
from tessera.transforms.algebra.wide_accumulation import WidenAccumulation
from tessera.transforms.axes.split_batched_dots import SplitBatchedDots
from tessera.transforms.core.function_pass import FunctionPass, function_pass

_MOST_AXES = 3
EIGHTS = (f8e4m3, f8e5m2)


@dataclass(frozen=True)
class ShortForm:
    """The errors of a short form: relative to the result, absolute, relative to 1 − |result|."""

    relative: float
    absolute: float = inf
    beside_one: float = inf


SHORT_FORMS: Mapping[str, ShortForm] = MappingProxyType(
    {
        "exp": ShortForm(2e-5),
        "exp2": ShortForm(1e-6),
        "sigmoid": ShortForm(2e-5),
        "tanh": ShortForm(6e-4, 5e-4),
        "erf": ShortForm(inf, 2e-6, 5e-4),
    }
)
"""The accuracy of the short instruction sequences of GPUs."""

UNITS: Mapping[DType, float] = MappingProxyType({bf16: 2.0**-10, f16: 2.0**-13} | dict.fromkeys(EIGHTS, 2.0**-10))
"""Relative errors that do no harm where a value is rounded to a type. 8 bits would do with less; values that are summed
beside them would not."""


def legalize_stages(*, contract: bool, arch: str = "sm_90a", fast: bool = False) -> dict[str, FunctionPass]:
    """The passes that legalize a function; for a `fast` compile, without those that only make it run faster."""
    passes: list[FunctionPass] = [MarkMultiples(), WidenAccumulation(), SplitBatchedDots()]
    passes += [PlainDots(arch), DegenerateMatmuls()]
    if contract:
        passes.append(UseShortForms())
    if contract and not fast:
        passes.append(GatherFactors())
    if not fast:
        passes.append(ScaleMaxima())
    passes.append(RoundMultiples(contract))
    if not fast:
        passes += [*([ShareReciprocals()] if arch == "sm_90a" else []), UsePowersOfTwo(), ReduceLate(), ReduceEarly()]
    return {one.name: one for one in passes}


def legalize(function: tile.FuncOp, *, contract: bool, arch: str = "sm_90a", fast: bool = False) -> None:
    """Rewrites and marks a function by all of them."""
    check_supported(function)
    context = Context()
    for one in legalize_stages(contract=contract, arch=arch, fast=fast).values():
        one.rewrite(function, context)


def gather(function: tile.FuncOp) -> None:
    """Gathers factors in front of approximate functions and maxima; the products need no rounding."""
    mark(gather_factors(function, APPROXIMATE))


def use_powers(function: tile.FuncOp) -> None:
    """Writes approximate exponentials as powers of two."""
    use_powers_of_two(function, APPROXIMATE, LOOSE, TOGETHER)


GatherFactors = function_pass("gather-factors", gather)
ShareReciprocals = function_pass("share-reciprocals", share_reciprocals)
UsePowersOfTwo = function_pass("powers-of-two", use_powers)


@dataclass(frozen=True)
class PlainDots(FunctionPass):
    """Rewrites dots of types that an architecture has no instruction for."""

    name = "plain-dots"
    arch: str = "sm_90a"

    def rewrite(self, function: tile.FuncOp, ctx: Context) -> None:
        make_dots_plain(function, self.arch)


def use_short_forms(function: tile.FuncOp) -> None:
    """Marks functions whose short forms are exact enough for the results that they go into, or writes these forms."""
    use_tails(function, APPROXIMATE, Tolerances(_reads, SHORT_FORMS, UNITS).relative)
    tolerances = Tolerances(_reads, SHORT_FORMS, UNITS)
    for op in function.body.walk():
        if isinstance(op, tile.EwOp) and tolerances.allows_approximation(op):
            op.attributes[APPROXIMATE] = UnitAttr()
    use_sigmoids(function, APPROXIMATE, LOOSE, tolerances.absolute)


def reduce_early(function: tile.FuncOp) -> None:
    """Puts reductions right behind what they reduce: wide tiles need not be kept for them."""
    for op in list(function.body.walk()):
        if not isinstance(op, tile.ReduceOp):
            continue
        owner, block = op.operand.owner, op.parent_block()
        if block is not None and isinstance(owner, Operation) and owner.parent_block() is block:
            op.detach()
            block.insert_op_after(op, owner)


UseShortForms = function_pass("short-forms", use_short_forms)
ReduceEarly = function_pass("reduce-early", reduce_early)


def _reads(value: SSAValue) -> Iterator[tuple[Operation, DType]]:
    """Every op that uses a value, and the element type it needs it in; repeating a value is no use of it."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, tile.ExpandOp | tile.BroadcastOp | tile.TransOp):
            yield from _reads(user.results[0])
        elif isinstance(user, tile.DotOp) and use.index < 2:
            yield user, tile_dtype(user.c)
        else:
            yield user, tile_dtype(value)


def check_supported(function: tile.FuncOp) -> None:
    """Raises the refusal of ops without machine code, before anything is written."""
    for op in function.body.walk():
        for value in op.results:
            if isinstance(value.type, TensorType) and len(tile_type(value).get_shape()) > _MOST_AXES:
                raise CompileError(
                    f"{op.name} works on {tile_type(value)}: tiles on GPUs have at most {_MOST_AXES} axes",
                    span=span_of(op.location),
                    hint="fold two axes into one, or run it in the interpreter: TESSERA_INTERPRET=1",
                )
        if isinstance(op, tile.DebugPrintOp):
            raise unrecorded(op)
