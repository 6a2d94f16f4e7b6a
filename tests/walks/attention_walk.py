"""Writes docs/attention-walk.md: causal attention through every stage of the warp-specialized path, as the code is now.

    python tests/walks/attention_walk.py        or: make docs

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
from tessera.targets.cuda import compile as compiler
from tessera.targets.passes import ALL_PASSES

PAGE = Path(__file__).parents[2] / "docs" / "attention-walk.md"
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
    "take-host-checks": (
        "That keys and values have as many heads as queries, or a whole part of as many, is asked of sizes alone: the "
        "host checks it at the launch, and the assertions are gone from the kernel."
    ),
    "mark-multiples": (
        "Where accumulators are rescaled, the product and the sum behind it may be rounded once: one instruction."
    ),
    "short-forms": (
        "Weights are rounded to bf16 anyhow, so that their `exp` may be the machine's own, `approximate` one. The "
        "`exp` of the change of a maximum multiplies sums in f32, and stays exact."
    ),
    "gather-factors": (
        "The scale 1/√d moved behind the mask: the maximum is taken of scores as the dot leaves them, and a row's "
        "maximum is scaled instead of all its scores."
    ),
    "round-multiples": (
        "The marks of `mark-multiples` are gone: what is not marked as rounded may become one instruction with the sum "
        "behind it, and that is all products here."
    ),
    "powers-of-two": (
        "The `exp` of the weights became `exp2`, which is what the machine has. Its factor is folded into the scale."
    ),
    "reduce-early": (
        "The sum of the weights now stands right behind them, in front of their cast to bf16: the 128×128 tile of f32 "
        "is not needed any longer than that."
    ),
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
    "merge-masks": (
        "The causal mask and that of columns beyond the last key put the same number in: they are joined to one, and "
        "scores are chosen once."
    ),
    "insert-wgmma-waits": (
        "Dots are issued, and waited for where their accumulators are read. A slot is released right behind the "
        "wait for the last dot that reads it."
    ),
    "sink-into-branches": (
        "The end of a program instance, behind the branch that asks whether there are any keys, moves into both of its "
        "sides: no accumulators leave a branch."
    ),
    "release-early": (
        "The queries are released in both sides of that branch, in the first one in front of the last dot: the "
        "producer may copy those of the next program instance while this one is finished."
    ),
    "early-exit-consumers": (
        "The first consumer's 64 rows see fewer keys than the block's last row does: its loop ends sooner. A loop "
        "behind its store waits for the rest of the stages and releases them: the producer fills them for the other."
    ),
    "share-pipeline-states": (
        "Keys and values are copied in step, and so are queries and numbers of program instances: one pipeline state "
        "serves both of each pair, and loops carry fewer values."
    ),
    "warp-groups-to-nv": (
        "The machine's own ops: tiles have layouts, rings are shared memory with two barriers to a slot, producer "
        "copies go through tensor maps, dots are `wgmma`, and partitions are warpgroups with their own share of the "
        "registers."
    ),
    "vote-before-max": (
        "Whether any maximum rose is asked of what each thread holds itself (`nv.partial`): the four threads that "
        "share a row exchange their maxima only in the branch that is hardly ever taken."
    ),
    "defer-row-reductions": (
        "Each thread adds up the weights that it holds. The four partial sums of a row are added to each other behind "
        "the loop."
    ),
    "sink-wgmma-operands": (
        "The cast of the weights to bf16 moved behind the wait for the dot that still reads the former ones: nothing "
        "writes registers that a `wgmma` in flight reads."
    ),
    "mark-row-aligned": (
        "The function says of which arguments the rows begin at multiples of 16 bytes: an attribute for the emitter, "
        "in its first line, and beyond what is shown of that."
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
LOCATION = re.compile(r' loc\((?:"[^"]*"|[^()"]|\((?:"[^"]*"|[^()"]|\((?:"[^"]*"|[^()"])*\))*\))*\)')
UNCHANGED = "It changes nothing here."
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
        found = {path.stem.partition("-")[2]: LOCATION.sub("", path.read_text(encoding="utf-8")) for path in files}
    ptx = compiler.compile_lowered(lowered.module, made.name, options).ptx
    # In front of all passes stands what the trace made.
    return {"trace": found.pop("kernel"), **found}, ptx


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
        parts.append(UNCHANGED if written == before else f"```mlir\n{shown(written, before)}\n```")
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
