"""Writes docs/attention-walk.md: causal attention through every stage of the warp-specialized path, as the code is now.

    python tests/attention_walk.py        or: make docs

The page is made of a dump: what it shows is what a call compiles, in that order.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory

import tessera
from tessera import Schedule, knobs, stdlib
from tessera.compiler.options import CompileOptions
from tessera.targets import text
from tessera.targets.cuda import compile as compiler
from tessera.targets.passes import ALL_PASSES

PAGE = Path(__file__).parents[1] / "docs" / "attention-walk.md"
SHAPE, BLOCK = (64, 4096, 128), (128, 128)
PTX_OP = (
    "wgmma.mma_async",
    "cp.async.bulk.tensor",
    "mbarrier.try_wait",
    "setmaxnreg",
    "ex2.approx",
    "wgmma.wait_group",
)

WORDS = {
    "trace": (
        "The kernel's Python, run once on symbols. One program instance has 128 queries of one head and walks "
        "all keys, 128 at a time; a mask is a plain comparison of row and column numbers."
    ),
    "powers-of-two": ("`exp` became `exp2`, with its factor folded into the scale."),
    "clip-ranges": (
        "The mask `row >= column` bounds the loop: keys behind the block's last row are never visited. The bound "
        "itself is a scalar, so only the loop's head differs."
    ),
    "lazy-rescale": (
        "The running maximum is replaced only where it grew by so much that it matters. The sums are rescaled in "
        "a branch that is hardly ever taken."
    ),
    "software-pipeline-dots": (
        "The first dot of an iteration now comes before the second one of the iteration before, so that the tensor "
        "cores have work while exponentials are computed. The first iteration is peeled off in front, the last dot "
        "behind."
    ),
    "warp-specialize": (
        "One warp group is the producer, two are consumers of 64 rows each. Operands of dots go through rings: "
        "`pipe.producer_copy` on one side, `pipe.consumer_wait` and `pipe.consumer_release` on the other. Both go "
        "through the program instances of the grid by themselves."
    ),
    "split-busy-ranges": (
        "Iterations in which the mask lets everything through have a loop of their own, without the mask."
    ),
    "insert-wgmma-waits": (
        "Dots are issued, and waited for where their accumulators are read. A slot is released right behind the "
        "wait for the last dot that reads it."
    ),
    "sink-into-branches": (
        "The end of a program instance, behind the branch that asks whether there are any keys, moves into both of its "
        "sides: no accumulators leave a branch."
    ),
    "warp-groups-to-nv": (
        "The machine's own ops: tiles have layouts, rings are shared memory with two barriers to a slot, producer "
        "copies go through tensor maps, dots are `wgmma`, and partitions are warpgroups with their own share of the "
        "registers."
    ),
}
"""What a pass did to this kernel; passes that are not listed are described by their docstrings."""

HEAD = """\
Written by `make docs` from the code as it is: do not edit. The kernel is compiled for sm_90a, with arrays of {shape}
bf16 and blocks of {queries} queries by {keys} keys. No pass knows what attention is.

This is what the compiler has after each pass, shortened: scalars, addresses, fills and broadcasts are left
out, so are types of operands and layouts; and of lines that are as after the pass before, only those around a change
are shown. What the ops mean is said in
[Tile IR](tile.md), [Pipe IR](pipe.md) and [The nv level on sm_90a](hopper.md); what the passes do in general, in
[Passes](transforms.md)."""

# Scalars, addresses and shapes: most of the text, and of little interest.
DULL = re.compile(r"(%\S+(, %\S+)* = )?(arith\.|tile\.(dim|stride|view|full|expand|broadcast|assert)\b|nv\.extent)")
LONGEST_LINE = 150
AROUND = 3
"""Lines that are shown on both sides of a change."""


def shown(text: str, before: str) -> str:
    """The text shortened. Of lines that are as before, whatever their values are called, those around changes."""
    now, old = (list(_kept(each)) for each in (text, before))
    if _nameless(now) == _nameless(old):
        # The change is one of scalars.
        now, old = (list(map(_brief, each.splitlines())) for each in (text, before))
    lines: list[str] = []
    for kind, _, _, start, end in SequenceMatcher(None, _nameless(old), _nameless(now), autojunk=False).get_opcodes():
        last, run = end == len(now), now[start:end]
        left_out = run[AROUND if start else 0 : None if last else -AROUND] if kind == "equal" else []
        if len(left_out) > AROUND:
            head, tail = (run[:AROUND] if start else []), ([] if last else run[-AROUND:])
            indent = min((_indent(line) for line in left_out), key=len)
            run = [*head, f"{indent}// {len(left_out)} lines as before", *tail]
        lines += run
    return "\n".join(lines)


def _nameless(lines: Sequence[str]) -> list[str]:
    return [re.sub(r"%\w+", "%", line) for line in lines]


def _kept(text: str) -> Iterator[str]:
    return (_brief(line) for line in text.splitlines() if not DULL.match(line.lstrip()))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _brief(line: str) -> str:
    """A line without the types of operands and layouts; what is too long ends in a mark."""
    said = re.sub(r", #nv\.layout<.*?\]>", "", line)
    said = re.sub(r"tensor<([^<>]*)>", r"\1", said)
    if not said.endswith("{") and (types := said.rfind(" : ")) >= 0:
        kind = said[types + 3 :]
        kind = kind.rpartition(" -> ")[2] if " -> " in kind else kind if " = " in said else ""
        said = said[:types] + (f" : {kind}" if kind else "")
    end = " {" if said.endswith("{") else ""
    return said if len(said) <= LONGEST_LINE else f"{said[: LONGEST_LINE - 4]} …{end}"


def walked() -> tuple[dict[str, str], str]:
    """The text after every stage, by its name and in order; and the PTX."""
    given = [tessera.empty(SHAPE, tessera.bf16) for _ in range(3)]
    made = stdlib.attention.with_schedule(Schedule(block=BLOCK)).lower(*given, mask=stdlib.causal)
    options = CompileOptions.of("cuda", "sm_90a", row_aligned=range(len(given) + 1))
    with TemporaryDirectory() as folder:
        with knobs.dump_dir.using(Path(folder)):
            lowered = compiler.lower_kernel(made.module, made.name, options)
        # What was tried and did not fit has folders of its own.
        taken = Path(folder) / lowered.files.inside
        files = sorted([*taken.parent.glob("*.mlir"), *taken.glob("*.mlir")], key=lambda path: path.name)
        found = {path.stem.partition("-")[2]: str(text.read(path.read_text(encoding="utf-8"))) for path in files}
    ptx = compiler.compile_lowered(lowered.module, made.name, options).ptx
    return {"trace": str(made.module), **found}, ptx


def words_of(name: str) -> str:
    if name in WORDS:
        return WORDS[name]
    said = inspect.getdoc(ALL_PASSES[name]) or ""
    return said.partition("\n\n")[0].replace("\n", " ")


def instructions(ptx: str) -> Iterator[str]:
    """The first of each kind that is of interest."""
    for kind in PTX_OP:
        lines = [line.strip() for line in ptx.splitlines() if kind in line]
        if lines:
            first = lines[0].replace("\t", " ")
            yield f"{len(lines):>4} ×  {first if len(first) <= LONGEST_LINE else first[: LONGEST_LINE - 2] + ' …'}"


def page() -> str:
    found, ptx = walked()
    source = inspect.getsource(stdlib.attention.function).rstrip()
    parts = [
        "# Causal attention, pass by pass",
        HEAD.format(shape="×".join(map(str, SHAPE)), queries=BLOCK[0], keys=BLOCK[1]),
        "## The kernel",
        f"```text\n{source}\n```",
    ]
    before = ""
    for name, written in found.items():
        parts.append(f"## {name}")
        parts.append(words_of(name))
        parts.append("It changes nothing here." if written == before else f"```mlir\n{shown(written, before)}\n```")
        before = written
    told = f"LLVM makes {len(ptx.splitlines())} lines of it. What matters, how often it stands there, and where first:"
    parts += ["## PTX", told, "```text\n" + "\n".join(instructions(ptx)) + "\n```"]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str]) -> int:
    path = Path(arguments[0]) if arguments else PAGE
    path.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
