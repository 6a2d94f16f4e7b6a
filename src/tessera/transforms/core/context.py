"""The state that a compile hands from pass to pass: the dialects and the recorder of facts."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.context import Context
from xdsl.ir import Dialect

from tessera.ir.text import OWN_DIALECTS, new_context
from tessera.transforms.core.facts import Facts, Recorder


class CompileContext(Context):
    """An xDSL context with the facts that hold in this compile."""

    recorder: Recorder

    @staticmethod
    def with_facts(facts: Facts | None = None, dialects: Iterable[Dialect] = OWN_DIALECTS) -> CompileContext:
        context = CompileContext()
        plain = new_context(dialects)
        for dialect in plain.loaded_dialects:
            context.load_dialect(dialect)
        context.recorder = Recorder(facts)
        return context


def recorder_of(context: Context) -> Recorder:
    """The recorder of a compile; a plain xDSL context knows no facts."""
    return context.recorder if isinstance(context, CompileContext) else Recorder()
