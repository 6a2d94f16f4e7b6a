"""Random kernels with dots in loops and branches, whose rows have nothing to do with each other."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

VIEW, TILE = "!tile.view<2, f32, global>", "tensor<4x4xf32>"
PROGRAM = """
tile.func @k(%a: {VIEW}, %b: {VIEW}, %n: index, %m: index, %y: {VIEW})
    outputs 1 shapes [[M, 9], [9, 4], [], [], [M, 8]] grid ["(M + 3)//4", 2] {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %instance = tile.program_id 0
  %i0 = tile.program_id 1
  %row = arith.muli %instance, %c4 : index
  %column = arith.muli %i0, %c4 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : {TILE}
{body}
  tile.store {total}, %y[%row, %column] : {TILE}, {VIEW}
  tile.return
}}
"""


@dataclass
class _Text:
    source: random.Random
    lines: list[str] = field(default_factory=list[str])
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def add(self, made: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {made}")
        return name

    def load(self, argument: str, counter: str) -> str:
        at = self.source.choice(["%c0", "%c1", counter])
        offsets = f"%row, {at}" if argument == "%a" else f"{at}, %c0"
        loaded = self.add(f"tile.load {argument}[{offsets}] : {VIEW} -> {TILE}")
        if argument == "%b" and self.source.random() < 0.4:
            return self.add(f"tile.trans {loaded}, [1, 0] : {TILE} -> {TILE}")
        return loaded

    def dot(self, left: str, right: str, total: str) -> str:
        return self.add(f"tile.dot {left}, {right}, {total} : {TILE}, {TILE}, {TILE} -> {TILE}")

    def block(self, total: str, counter: str, depth: int) -> str:
        """Some work on an accumulator; returns its name after it."""
        early = self.load("%b", counter) if self.source.random() < 0.3 else None
        for _ in range(self.source.randint(1, 3)):
            kind = self.source.choice(["dot", "dot", "staged", "scaled", "loop", "loop", "branch"])
            if kind == "loop" and depth:
                total = self.loop(total, depth)
            elif kind == "branch" and depth:
                total = self.branch(total, counter, depth)
            elif kind == "scaled":
                total = self.add(f"tile.ew<max> {total}, %clear : {TILE}, {TILE} -> {TILE}")
            elif kind == "staged":
                inner = self.dot(self.load("%a", counter), self.load("%b", counter), "%clear")
                total = self.dot(inner, self.load("%b", counter), total)
            else:
                total = self.dot(self.load("%a", counter), self.load("%b", counter), total)
        if early is not None:
            total = self.dot(self.load("%a", counter), early, total)
        return total

    def loop(self, total: str, depth: int) -> str:
        result, counter, inner = self.name(), self.name(), self.name()
        stop, start = self.source.choice(["%n", "%m", "%c2"]), self.source.choice(["%c0", "%c0", "%c1"])
        head = f"{result} = scf.for {counter} = {start} to {stop} step %c1 iter_args({inner} = {total}) -> ({TILE}) {{"
        self.lines.append(head)
        self.lines += [f"scf.yield {self.block(inner, counter, depth - 1)} : {TILE}", "}"]
        return result

    def branch(self, total: str, counter: str, depth: int) -> str:
        asked = self.add(f"arith.cmpi slt, {counter}, {self.source.choice(['%n', '%m'])} : index")
        result = self.name()
        self.lines.append(f"{result} = scf.if {asked} -> ({TILE}) {{")
        self.lines += [f"scf.yield {self.block(total, counter, depth - 1)} : {TILE}", "} else {"]
        other = self.block(total, counter, 0) if self.source.random() < 0.5 else total
        self.lines += [f"scf.yield {other} : {TILE}", "}"]
        return result


def random_program(seed: int) -> str:
    """A kernel @k of one argument with rows, one that all rows share, two numbers of iterations, and a result."""
    written = _Text(random.Random(seed))
    total = written.block("%clear", "%i0", 2)
    total = written.dot(written.load("%a", "%i0"), written.load("%b", "%i0"), total)
    return PROGRAM.format(VIEW=VIEW, TILE=TILE, body="\n".join(written.lines), total=total)


def arguments(n: int, m: int, rows: int = 10) -> list[object]:
    """Small whole numbers: their dots are exact."""
    chance = np.random.default_rng(rows)
    left, right = (chance.integers(-1, 2, shape).astype(np.float32) for shape in ((rows, 9), (9, 4)))
    return [left, right, n, m, np.zeros((rows, 8), np.float32)]
