"""Examples of the documents: their Python blocks run, and every kernel and model that they compile is recorded.

Blocks run as machine code of this host, or they would show nothing; what is recorded is compiled for each target, of
what the blocks gave to the compilers. What threads and processes of the tiers compile meanwhile depends on time, and is
left out.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from recorded_entries import Recording, code_text, plain_text
from recorded_pins import TARGETS, compiling_for
from recorded_programs import plan_text, record_graph, refusal

from tessera import programs
from tessera.errors import TesseraError
from tessera.ir import text
from tessera.tile.calls import compiling

Case = Callable[[Recording], None]
BY_THE_CLOCK = ("MetaTracingRuntime", 'tiers="auto"')
"""Pages with these words run examples in tiers."""


@dataclass
class Seen:
    """What was given to the compilers, once each: kernels with what is known of arguments, and graph modules."""

    kernels: dict[str, tuple[Any, Any, Any]] = field(default_factory=dict[str, tuple[Any, Any, Any]])
    graphs: dict[str, tuple[Any, str]] = field(default_factory=dict[str, tuple[Any, str]])


@contextmanager
def watching() -> Generator[Seen]:
    """Notes what the main thread compiles."""
    seen, machined, compile_graph = Seen(), compiling.machined, programs.compile_graph

    def noted(source: Any, chosen: Any, facts: Any, lines: Any = None) -> Any:
        if threading.current_thread() is threading.main_thread():
            known = f"{text.write(source.module)}{source[1:]}{sorted(map(str, facts))}{lines}"
            seen.kernels.setdefault(known, (source._replace(module=source.module.clone()), facts, lines or {}))
        return machined(source, chosen, facts, lines or {})

    def noted_graph(module: Any, *args: Any, **options: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            name = options.get("name", "main")
            seen.graphs.setdefault(f"{name} {text.write(module)}", (module.clone(), name))
        return compile_graph(module, *args, **options)

    with patch.object(compiling, machined.__name__, noted), patch.object(programs, compile_graph.__name__, noted_graph):
        yield seen


def firsts_of(seen: Seen) -> Seen:
    """Of each kernel the program of its first call, and the first graph: what comes later is decided by the clock."""
    kernels: dict[str, tuple[Any, Any, Any]] = {}
    for one in seen.kernels.values():
        kernels.setdefault(one[0].name, one)
    return Seen(kernels, dict(list(seen.graphs.items())[:1]))


def record_seen(recording: Recording, key: str, seen: Seen) -> None:
    """Everything that was seen, for every target."""
    counts: Counter[str] = Counter()
    for source, facts, lines in seen.kernels.values():
        counts[source.name] += 1
        for target in TARGETS:
            name = f"{key} {source.name} {counts[source.name]} @ {target}"
            try:
                with compiling_for(target) as chosen:
                    made = compiling.machined(source, chosen, facts, lines)
            except TesseraError as error:
                recording.add(name, refused=refusal(error))
                continue
            recording.add(
                name,
                code=code_text(made.code.decode(), made.plan.name),
                plan=plan_text(made.plan),
                facts=plain_text(sorted(map(str, facts))),
                guards=plain_text(sorted(map(str, made.guards))),
            )
    for number, (module, name) in enumerate(seen.graphs.values(), 1):
        record_graph(recording, f"{key} graph {number}", module, TARGETS, name)


def documents() -> dict[str, Case]:
    """The pages that have blocks which run."""
    from recorded_parts import test_module

    pages = test_module(".", "test_documents")

    def case(path: Path, recording: Recording) -> None:
        names: dict[str, Any] = {"__name__": "__document__"}
        before, written = Path.cwd(), path.read_text(encoding="utf-8")
        with TemporaryDirectory() as folder, watching() as seen:
            os.chdir(folder)
            try:
                for block in pages.blocks_of(written):
                    if block.info[:1] == ["python"] and "no-run" not in block.info:
                        pages.run(block, names, Path(folder))
            finally:
                os.chdir(before)
        if any(word in written for word in BY_THE_CLOCK):
            seen = firsts_of(seen)
        record_seen(recording, path.stem, seen)

    def runs(path: Path) -> bool:
        blocks = pages.blocks_of(path.read_text(encoding="utf-8"))
        return any(block.info[:1] == ["python"] and "no-run" not in block.info for block in blocks)

    return {path.stem: partial(case, path) for path in pages.DOCUMENTS if runs(path)}
