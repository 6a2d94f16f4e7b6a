"""Draws mutations of passes: `python tests/mutants/draw.py FOLDER` prints the list that the seed gives for a source.

The list was drawn once, from the commit that `mutants.json` names, before modules were moved and renamed; its first 60
are kept, and `run.py --relocate` follows what is moved. Drawing from the sources of today gives another list. A file
gives one mutation at most, and kinds are as likely as each other, however many sites they have.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path

from mutant_sites import KINDS, SOURCE, fingerprint, functions, has_logic, lines_around, path_of, sites

SEED = 31
DRAWN = 90
"""More than are kept: had some changed nothing that can be told, others would have replaced them."""

ROOMS = {"transforms": "tessera/transforms", "cuda": "tessera/targets/cuda", "cpu": "tessera/targets/cpu"}
ORDER = ("transforms", "cuda", "transforms", "cpu", "transforms", "cuda", "transforms", "cuda", "cpu", "transforms")
NO_PASSES = {
    "transforms": "core.context core.stages core.legality pipeline universe",
    "cuda": "compile emit.rules interpreter ir.dialect ir.hopper ir.hopper_copies ir.hopper_transpose ir.hopper_types "
    "ir.nv ir.types ir.wgmma ptx.assembler ptx.reading ptx.tools",
    "cpu": "arm_instructions compile emit.rules features instructions interpreter ir.dialect ir.types",
}
"""Modules and folders of a room that are not drawn from: dialects, interpreters, drivers, and tools beside them."""


@dataclass(frozen=True)
class Drawn:
    """One mutation as it is drawn."""

    module: str
    function: str
    kind: str
    index: int
    fingerprint: str
    original: str
    mutated: str


def draw(seed: int = SEED, count: int = DRAWN, source: Path = SOURCE) -> list[Drawn]:
    """So many mutations of functions whose shape no other function has, in the order in which they are drawn."""
    chance = random.Random(seed)
    shapes = Counter(fingerprint(one) for path in sorted(source.rglob("*.py")) for _, one in functions(_tree(path)))
    files = {room: _shuffled(chance, source, room) for room in ROOMS}
    drawn: list[Drawn] = []
    for room in islice(cycle(ORDER), count):
        while True:
            one = _drawn(chance, next(files[room]), shapes, source)
            if one is not None:
                break
        drawn.append(one)
    return drawn


def _shuffled(chance: random.Random, source: Path, room: str) -> Iterator[str]:
    """The modules of a room: in an order in which large ones tend to come first."""
    found: list[tuple[float, str]] = []
    for path in sorted((source / ROOMS[room]).rglob("*.py")):
        module = ".".join(path.relative_to(source).with_suffix("").parts)
        inside = path.relative_to(source / ROOMS[room]).with_suffix("").parts
        prefixes = {".".join(inside[:end]) for end in range(1, len(inside) + 1)}
        count = sum(len(sites(one, kind)) for _, one in functions(_tree(path)) if has_logic(one) for kind in KINDS)
        if prefixes.isdisjoint(NO_PASSES[room].split()) and count:
            found.append((chance.random() ** (1 / count**0.5), module))
    return iter(module for _, module in sorted(found, reverse=True))


def _drawn(chance: random.Random, module: str, shapes: Counter[str], source: Path) -> Drawn | None:
    text = path_of(module, source).read_text(encoding="utf-8")
    offered: dict[str, list[tuple[str, int, str]]] = {kind: [] for kind in KINDS}
    found = dict(functions(ast.parse(text)))
    for name, function in found.items():
        shape = fingerprint(function)
        if has_logic(function) and shapes[shape] == 1:
            for kind in KINDS:
                offered[kind] += [(name, index, shape) for index in range(len(sites(function, kind)))]
    kinds = [kind for kind in KINDS if offered[kind]]
    if not kinds:
        return None
    kind = chance.choice(kinds)
    name, index, shape = chance.choice(offered[kind])
    return Drawn(module, name, kind, index, shape, *lines_around(text, sites(found[name], kind)[index]))


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    drawn = draw(source=Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
    sys.stdout.write(json.dumps([asdict(one) for one in drawn], indent=1, ensure_ascii=False) + "\n")
