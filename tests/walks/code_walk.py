"""Writes docs/walk.md: three walks through the code, from a decorator or a call to what runs.

    python tests/walks/code_walk.py        or: make docs

Listings are cut out of the sources by the names of functions and words of their statements; what things look like there
is what the compiler and the tiers made just now. A function that is renamed, or a statement that is gone, is an error.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from walked_files import CALL_TO_LAUNCH, CALL_TO_TIER_3, CALLS, KERNEL_TO_PTX

import tessera
from tessera import Schedule, bf16, jit, kernel, knobs, tile
from tessera.compiler.launch_plan import ArrayArgument
from tessera.compiler.options import CompileOptions
from tessera.compiler.target import target_named
from tessera.metatracing import MetaTracingRuntime, RuntimeConfig
from tessera.tile.calls.compiling import source_of
from tessera.transforms.core.facts import Facts

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "tessera"
PAGE = ROOT / "docs" / "walk.md"
LONGEST_LINE = 170
TICK = 1_000_000
MACHINE_OPS = (
    *("nv.func", "nv.alloc", "= nv.mbarriers", "nv.tensor_map", "nv.setmaxnreg", "nv.tma_load", "nv.mbarrier_wait"),
    *("nv.mbarrier_arrive", "nv.wgmma", "scf.for", "nv.tma_store"),
)
"""The ops of the machine that the page shows."""

HEAD = """\
# Three walks through the code

Read here, in half an hour, the way of a kernel, of a call and of a hot function through the code, file by file:

1. [From `@kernel` to PTX](#from-kernel-to-ptx)
2. [From a `jit` call to a launch](#from-a-jit-call-to-a-launch)
3. [From a first call to Tier 3](#from-a-first-call-to-tier-3)

For each file there is what happens in it, the lines that do it (`…` stands for lines that are left out), and often what
the thing looks like by then; of larger texts only the ops that matter, without types. To follow on a machine of your
own, set `TESSERA_DUMP_DIR` to a folder and call something: it gets the text after every stage
([Passes](transforms.md)). Words are explained in the [Glossary](glossary.md), and folders in the
[README](../README.md#where-things-live). All of this page is written by `make docs` from the code as it is: do not
edit."""


@kernel(schedule=Schedule(block=(128, 64, 64)))
def project(x: Any, w: Any):
    """relu(x·w)."""
    here = tile.context()
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, x.shape[1], here.k):
        rows = tile.load(x, at=(here.row_start, k), shape=(here.m, here.k))
        acc = tile.dot(rows, tile.load(w, at=(k, 0), shape=(here.k, here.n)), acc)
    return tile.cast(tile.maximum(acc, 0), x.dtype)


@jit
def shares(x: Any, w: Any) -> Any:
    """Softmax over the products of rows."""
    return tessera.softmax(x @ w)


@kernel
def scaled(x: Any, factor: float):
    """x · factor."""
    return tile.load(x) * factor


WALKS = {"project": KERNEL_TO_PTX, "shares": CALL_TO_LAUNCH, "scaled": CALL_TO_TIER_3}


# Listings


@cache
def source(path: str) -> tuple[str, ast.Module]:
    """The text of a file, and its syntax."""
    text = (SOURCES / path).read_text(encoding="utf-8")
    return text, ast.parse(text)


def definition(path: str, name: str) -> ast.FunctionDef:
    """A function of a file, by its name: `function`, or `Class.method`."""
    scope: Sequence[ast.stmt] = source(path)[1].body
    found: ast.stmt | None = None
    for part in name.split("."):
        named = (one for one in scope if isinstance(one, ast.FunctionDef | ast.ClassDef) and one.name == part)
        found = next(named, None)
        if found is None:
            raise LookupError(f"{path} has no {name}")
        scope = found.body
    assert isinstance(found, ast.FunctionDef)
    return found


def listing(path: str, name: str, words: Sequence[str]) -> str:
    """The head of a function with the statements that have certain words, or with all; `…` for what lies between."""
    function, lines = definition(path, name), source(path)[0].splitlines()
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    end = _end(function)
    kept = _head(lines, function.lineno, function.body[0])
    kept |= set() if words else set(range(body[0].lineno, end + 1))
    for one in words:
        kept |= _statement(f"{name} of {path}", body, lines, one)
    shown: list[str] = []
    last = body[0].lineno - 1
    for number in sorted(kept):
        if _holds_code(lines, range(last + 1, number)):
            shown.append(_gap(shown[-1], lines[number - 1]))
        shown.append(lines[number - 1])
        last = max(last, number)
    if _holds_code(lines, range(last + 1, end + 1)):
        shown.append(_gap(shown[-1], lines[body[0].lineno - 1]))
    owner = name.rpartition(".")[0]
    head = f"# of {owner}\n" if owner else ""
    return head + textwrap.dedent("\n".join(shown))


def _holds_code(lines: Sequence[str], numbers: Iterable[int]) -> bool:
    return any(not _is_comment(lines[number - 1]) for number in numbers)


def _is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _gap(before: str, after: str) -> str:
    """A mark for lines that are left out: inside of what a line begins, else as far in as the next line."""
    return f"{_indent(before)}    …" if before.endswith(":") else f"{_indent(after)}…"


def _statement(where: str, body: Sequence[ast.stmt], lines: Sequence[str], words: str) -> set[int]:
    """The lines of the first statement with these words, and of the heads of those around it."""
    kept: set[int] = set()
    while True:
        found = next((one for one in body if words in _text(lines, range(one.lineno, _end(one) + 1))), None)
        if found is None:
            raise LookupError(f"{where} has no statement with {words!r}")
        blocks = list(_blocks(found, lines))
        if not blocks:
            return kept | set(range(found.lineno, _end(found) + 1))
        kept |= _head(lines, found.lineno, blocks[0][1][0])
        inside = next(
            (one for one in blocks if words in _text(lines, range(one[1][0].lineno, _end(one[1][-1]) + 1))), None
        )
        if inside is None or words in _text(lines, sorted(_head(lines, found.lineno, blocks[0][1][0]))):
            return kept
        first, body = inside
        kept |= _head(lines, first, body[0])


def _blocks(statement: ast.stmt, lines: Sequence[str]) -> Iterator[tuple[int, Sequence[ast.stmt]]]:
    """The blocks of a statement, each with the line at which its own head begins."""
    if body := getattr(statement, "body", []):
        yield statement.lineno, body
    for part in getattr(statement, "handlers", []):
        yield part.lineno, part.body
    for part in getattr(statement, "cases", []):
        yield part.pattern.lineno, part.body
    for field in ("orelse", "finalbody"):
        if body := getattr(statement, field, []):
            first: int = body[0].lineno
            while not lines[first - 1].lstrip().startswith(("else:", "finally:", "elif ")):
                first -= 1
            yield first, body


def _head(lines: Sequence[str], first: int, inside: ast.stmt) -> set[int]:
    """The lines from one on to the colon in front of a block; comments below it belong to the block."""
    last = inside.lineno - 1
    while last > first and _is_comment(lines[last - 1]):
        last -= 1
    return set(range(first, max(first, last) + 1))


def _text(lines: Sequence[str], numbers: Sequence[int]) -> str:
    return "\n".join(lines[number - 1] for number in numbers)


def _end(statement: ast.stmt) -> int:
    assert statement.end_lineno is not None
    return statement.end_lineno


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


# Samples


@cache
def samples() -> Mapping[str, str]:
    """What things look like on the way, by name: fenced blocks and sentences. First calls are made once."""
    with TemporaryDirectory() as folder, knobs.dump_dir.using(Path(folder)), knobs.verify.using(False):
        return {**_of_the_kernel(Path(folder) / "kernel"), **_of_the_call(Path(folder) / "call"), **_of_the_tiers()}


def _of_the_kernel(folder: Path) -> dict[str, str]:
    instance = project.lower(tessera.empty((1024, 512), bf16), tessera.empty((512, 64), bf16))
    with knobs.dump_dir.using(folder):
        made = target_named("cuda").compile(
            source_of(instance), CompileOptions("cuda", "sm_90a"), Facts(), {0: True, 1: True}, None
        )
    files = sorted(folder.rglob("*.*"), key=lambda path: path.name)
    texts = {path.stem.partition("-")[2]: path.read_text(encoding="utf-8") for path in files}
    changing, before = list[str](), ""
    for name, text in texts.items():
        if text != before and name not in ("kernel", "emit", "ptx"):
            changing.append(name)
        before = text
    taken = next(path.parent for path in files if path.suffix == ".ptx")
    common = [path.stem.partition("-")[2] for path in files if path.parent != taken]
    device, ptx = made.plan.device, made.code.decode()
    assert device is not None
    arrays = [one for one in made.plan.arguments if isinstance(one, ArrayArgument)]
    counted = {name: ptx.count(name) for name in ("wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier.try_wait")}
    return {
        "traced": _block("mlir", str(instance.module)),
        "report": _block("text", f"way: {made.report.way}\nrefused: {len(made.report.refusals)}\n"),
        "stages": "Before the ways part, it goes through " + _names(common[1:]) + ".",
        "changing": "What changes this kernel: " + _names(changing) + ".",
        "warp-specialize": _block("mlir", _part(texts["warp-specialize"], "pipe.", "scf.")),
        "warp-groups-to-nv": _block("mlir", _part(texts["warp-groups-to-nv"], *MACHINE_OPS)),
        "ptx": _block(
            "text",
            *[line for line in ptx.splitlines() if line.startswith((".visible", ".maxntid", ".target"))],
            *[f"{count:>3} × {name}" for name, count in counted.items()],
        ),
        "launch": _block(
            "text",
            f"grid: {_listed(made.plan.grid)}",
            *[f"word {one.word}: {one.dtype} of {_listed(one.shape)}" for one in arrays],
            f"{device.threads} threads, {device.shared:,} bytes of shared memory, {len(device.maps)} tensor maps",
        ),
    }


def _of_the_call(folder: Path) -> dict[str, str]:
    x, w = tessera.randn((6, 32), seed=1), tessera.randn((32, 16), seed=2)
    with knobs.dump_dir.using(folder):
        shares(x, w)
    (tiles,) = folder.rglob("*-schedule-to-tile.mlir")
    stages = [path.stem.partition("-")[2] for path in sorted(tiles.parent.iterdir())]
    lowered = shares.lower(x, w)
    program = lowered.program
    bound = program.bind([x, w])
    assert program.settings is not None
    executables = program.codes.executables(program.settings)
    code, call = bound.run.__code__, shares.__call__.__code__
    arrays = {number: str(value) for number, value in enumerate(program.host.values)}
    slots = [
        f"bytes {one.offset} to {one.offset + one.nbytes} of the arena, acts {one.first} to {one.last}"
        for one in bound.memory.slots
    ]
    return {
        "explained": _block("text", *_anywhere(str(shares.explain()))),
        "graph": _block("mlir", lowered.graph_ir.text),
        "graph stages": f"The stages: {_names(stages)}. The kernels that come of it: {_names(program.kernels)}.",
        "host": _block(
            "text",
            *[f"value {number}: {text}" for number, text in arrays.items()],
            *[str(step) for step in program.host.steps],
        ),
        "memory": _block("text", *slots, f"results: {bound.memory.results} bytes"),
        "plans": _block(
            "text",
            *[
                f"@{one.plan.name}: arguments in words {_listed([each.word for each in one.plan.arguments])}, grid "
                f"in word {one.plan.grid_word}"
                for one in executables
            ],
        ),
        "written": f"The function takes {_names(code.co_varnames[:2])}; the rest it knows as defaults of "
        f"parameters: {_names(code.co_varnames[2 : code.co_argcount])}.",
        "names": f"The code of `shares` is by now that of `{call.co_filename.strip('<>')}`. It looks at "
        f"{_names(sorted(call.co_names))}.",
    }


def _anywhere(explained: str) -> list[str]:
    """The lines that are the same on every machine: without where the file lies, and which processor there is."""
    lines = re.sub(r" \(\S+:\d+:\d+\)", "", explained).splitlines()
    return [line for line in lines if not line.lstrip().startswith("@")]


class _Ticking:
    """A clock that ticks a millisecond whenever it is read."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += TICK
        return self.now


def _of_the_tiers() -> dict[str, str]:
    config = RuntimeConfig(
        background_compilation=False,
        persist=False,
        candidates=1,
        tier2_compilation_threshold_ms=10,
        tier3_specialization_threshold_ms=30,
    )
    with MetaTracingRuntime(config, clock=_Ticking()) as runtime:
        fast, x = runtime.tiered(scaled), tessera.randn((8, 64), seed=1)
        tiers = [int(fast.call_with_tier(x, 2.0)[1]) for _ in range(CALLS)]
        (site,) = runtime.sites()
        record = next(iter(site.ring))
        best = site.programs[0]
        events = [event for event in runtime.counts.event_log if event.kind == "compile"]
        return {
            "tiers": "The tiers of the calls: " + _runs(tiers) + ".",
            "record": _block(
                "text",
                f"tier {int(record.tier)}, {record.nanoseconds} ns, for {record.stands_for} call: ",
                *[f"  {one}" for one in record.arguments],
            ),
            "words": "Of this kernel: " + _names(best.level.assumed) + ".",
            "compiled": "Compiled so: " + ", then ".join(event.what for event in events) + ".",
            "sites": _block("text", runtime.explain()),
        }


def _runs(tiers: Sequence[int]) -> str:
    """How many calls in a row each tier had, and how many were made by two of them alternately."""
    second, third = tiers.index(2), tiers.index(3)
    end = len(tiers) - tiers[::-1].index(2)
    return (
        f"{second} at Tier 1, {third - second} at Tier 2, {end - third} in the A/B test of Tiers 2 and 3, "
        "and the rest at Tier 3"
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def _block(kind: str, *texts: str) -> str:
    lines = "\n".join(text.rstrip() for text in texts).splitlines()
    return f"```{kind}\n" + "\n".join(map(_brief, lines)) + "\n```"


def _brief(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 2] + " …"


def _part(text: str, *words: str) -> str:
    """The lines of IR with some words, without locations and types of operands."""
    lines = [re.sub(r" loc\([^()]*\)", "", line) for line in text.splitlines() if not line.startswith("#")]
    kept = [line for line in lines if any(word in line for word in words)]
    return "\n".join([line.partition(" : ")[0] for line in kept])


# The page


def page() -> str:
    made, parts = samples(), [HEAD]
    text = Path(__file__).read_text(encoding="utf-8")
    shown = {one.name: one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)}
    lines = text.splitlines()
    for name, walk in WALKS.items():
        function = shown[name]
        start = min(one.lineno for one in function.decorator_list)
        written = "\n".join(lines[start - 1 : function.end_lineno])
        parts += [f"## {walk.title}", walk.words, f"```python no-run\n{written}\n```"]
        for number, step in enumerate(walk.steps, 1):
            cut = "\n\n".join(listing(step.path, one, words) for one, words in step.listed.items())
            parts += [
                f"### {number}. [`{step.path}`](../src/tessera/{step.path})",
                step.words,
                f"```python no-run\n{cut}\n```",
            ]
            parts += [made[step.sample]] if step.sample else []
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str]) -> int:
    path = Path(arguments[0]) if arguments else PAGE
    path.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
