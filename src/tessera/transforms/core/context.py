"""The state that a compile hands from pass to pass: dialects, the recorder of facts, checks of the host, the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.ir import Dialect

from tessera.errors import SourceSpan
from tessera.ir.text import OWN_DIALECTS, new_context
from tessera.shapes.conditions import Condition
from tessera.transforms.core.compile_report import CompileReport
from tessera.transforms.core.facts import Facts, Recorder


@dataclass(frozen=True)
class HostCheck:
    """A condition that must not be 0, and the error message otherwise; `check` names the safety check it is from."""

    condition: Condition
    message: str
    span: SourceSpan | None
    check: str | None = None


class CompileContext(Context):
    """An xDSL context with the facts that hold in this compile."""

    recorder: Recorder
    host_checks: list[HostCheck]
    """What has to be checked before a launch, because passes took it out of a kernel."""
    report: CompileReport
    """What passes refused to fuse."""

    @staticmethod
    def with_facts(facts: Facts | None = None, dialects: Iterable[Dialect] = OWN_DIALECTS) -> CompileContext:
        context = CompileContext()
        plain = new_context(dialects)
        for dialect in plain.loaded_dialects:
            context.load_dialect(dialect)
        context.recorder = Recorder(facts)
        context.host_checks = []
        context.report = CompileReport()
        return context


def recorder_of(context: Context) -> Recorder:
    """The recorder of a compile; a plain xDSL context knows no facts."""
    return context.recorder if isinstance(context, CompileContext) else Recorder()


def report_of(context: Context) -> CompileReport:
    """The report of a compile; that of a plain xDSL context is seen by no one."""
    return context.report if isinstance(context, CompileContext) else CompileReport()
