"""`check-budget`: whether a kernel fits the machine under a plan."""

from __future__ import annotations

from tessera.compiler.attempts import Fit
from tessera.errors import ResourceError
from tessera.ir.common.locations import span_of
from tessera.ir.tile import dialect as tile
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.lower.budget import REGISTERS, Budget, estimate
from tessera.targets.cuda.lower.choose_plan import SHARED
from tessera.transforms.core.compile_report import CompileReport

FILE = 1 << 16
"""Registers of a multiprocessor, which the threads of a block share."""
DOUBT = 1.15
"""How far off estimates may be; the assembler knows exactly."""
HOPELESS = 1.5
"""So many times the registers there are. Below that a kernel runs, at worst with some of its values in local memory."""


SMALLER = "give it a smaller block, or fewer stages"


class OverBudgetError(ResourceError):
    """A kernel that does not fit a GPU under its schedule."""


def budget_fit(function: nv.FuncOp, arch: str) -> Fit:
    """Whether a kernel fits: not at all, or by how much a thread needs more registers than it has."""
    budget, most = estimate(function), registers_of(function.thread_count)
    if (reason := refused(budget, most, arch)) is not None:
        return Fit(reason, hint=SMALLER)
    if budget.least > DOUBT * most:
        words = f"a thread needs about {budget.least} registers, and has {most}"
        return Fit(words, budget.least / most, SMALLER)
    return Fit()


def over_budget(function: tile.FuncOp, arch: str, report: CompileReport) -> OverBudgetError:
    """The error of a kernel for which no plan fits."""
    tried = [one for one in report.refusals if one.way.startswith("portable")]
    first, *others = dict.fromkeys(f"{one.reason}, with {_settings(one.way)}" for one in tried)
    return OverBudgetError(
        f"{function.sym_name.data} does not fit {arch}: {first}",
        span=span_of(function.location),
        story=[f"nor did it otherwise: {other}" for other in others],
        hint=SMALLER,
    )


def _settings(way: str) -> str:
    return way.removeprefix("portable, ").partition(",")[0]


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
