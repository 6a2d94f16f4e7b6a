"""`check-budget`: chooses the first of several plans for a kernel that fits the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects.builtin import ModuleOp

from tessera.errors import ResourceError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.lower.budget import REGISTERS, Budget, estimate
from tessera.targets.cuda.lower.choose_plan import SHARED, BlockPlan

FILE = 1 << 16
"""Registers of a multiprocessor, which the threads of a block share."""
DOUBT = 1.15
"""How far off estimates may be; the assembler knows exactly."""
HOPELESS = 1.5
"""So many times the registers there are. Below that a kernel runs, at worst with some of its values in local memory."""


class OverBudgetError(ResourceError):
    """A kernel that does not fit a GPU under its schedule."""


def fitted(
    module: ModuleOp, name: str, arch: str, plans: Iterable[BlockPlan], lower: Callable[[ModuleOp, BlockPlan], None]
) -> ModuleOp:
    """The module lowered under the first plan that fits; where none does, under the one that comes nearest.

    The module itself is what the last plan is tried on.
    """
    span = span_of(symbol_in(module, name, tile.FuncOp).location)
    nearest: tuple[float, ModuleOp] | None = None
    refusals: dict[str, None] = {}
    waiting = list(plans)
    while waiting:
        plan = waiting.pop(0)
        candidate = module.clone() if waiting else module
        lower(candidate, plan)
        made = symbol_in(candidate, name, nv.FuncOp)
        budget, most = estimate(made), registers_of(made.thread_count)
        refusal = refused(budget, most, arch)
        if refusal is None:
            if budget.least <= DOUBT * most:
                return candidate
            if nearest is None or budget.least / most < nearest[0]:
                nearest = budget.least / most, candidate
        else:
            refusals[f"{refusal}, with warps={plan.warps} and stages={plan.depth}"] = None
    if nearest is None:
        first, *others = refusals
        raise OverBudgetError(
            f"{name} does not fit {arch}: {first}",
            span=span,
            story=[f"nor did it otherwise: {other}" for other in others],
            hint="give it a smaller block, or fewer stages",
        )
    return nearest[1]


def registers_of(threads: int) -> int:
    """The most registers that each of so many threads of a block can have."""
    return min(REGISTERS, FILE // threads // 8 * 8)


def refused(budget: Budget, most: int, arch: str) -> str | None:
    """The reason why a kernel cannot run; None where it can."""
    if budget.shared > SHARED[arch]:
        return f"a block needs {-(-budget.shared // 1024)} KB of shared memory, and has {SHARED[arch] // 1024}"
    if budget.least > HOPELESS * most:
        return f"a thread needs about {budget.least} registers, and has {most}"
    return None
