"""Recipes: how the graph of a function is compiled at some level, as plain data; here, or in another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from tessera.errors import TesseraError
from tessera.lang.tracing.current_machine import current_machine
from tessera.lang.tracing.functions import ArgumentType
from tessera.metatracing.clients.shipping import SentSettings
from tessera.programs import Program, find, keep
from tessera.runtime.device.device import Device, device
from tessera.runtime.tensor.meta import Meta
from tessera.shapes.expr import Dim
from tessera.tiers.client import Call
from tessera.tiers.records import Described, Number
from tessera.tiers.stand_ins import stand_ins
from tessera.tile.calls.settings import Settings, settings, settings_on

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


class Recipe(NamedTuple):
    """How a graph is compiled. `digest` names the graph; sizes and numbers go by index of their argument, and axis.

    `guarded` are the words that are assumed: a program is right only where they hold. See `ChooseBlocks` for hints and
    rank. Kernels of few rows are `joined` where calls have shown that this may gain.
    """

    digest: str
    sizes: tuple[tuple[int, int, int], ...]
    numbers: tuple[tuple[int, Number], ...]
    guarded: tuple[str, ...]
    hints: tuple[str, ...]
    rank: int
    fast_math: bool
    joined: bool

    @staticmethod
    def of(
        digest: str,
        types: Sequence[ArgumentType],
        paths: Sequence[str],
        facts: Mapping[str, Number],
        assumed: Sequence[str],
        hints: tuple[str, ...],
        rank: int,
        fast_math: bool,
        joined: bool,
    ) -> Recipe:
        """The recipe for a call with these facts, with as few of the assumed words as decide all sizes."""
        sizes: list[tuple[int, int, int]] = []
        numbers: list[tuple[int, Number]] = []
        guarded: list[str] = []
        known: set[str] = set()
        wanted = set(assumed)
        for index, (one, path) in enumerate(zip(types, paths, strict=True)):
            # A number that is none equals nothing: no guard would ever let it pass.
            if path in wanted and one.weak and not isnan(facts[path]):
                numbers.append((index, facts[path]))
                guarded.append(path)
            for axis, size in enumerate(one.sizes):
                word = f"{path}.size[{axis}]"
                if isinstance(size, Dim) and word in wanted and str(size).isidentifier() and str(size) not in known:
                    known.add(str(size))
                    sizes.append((index, axis, int(facts[word])))
                    guarded.append(word)
        open_hints = tuple([hint for hint in hints if hint.partition("=")[0] not in known])
        return Recipe(digest, tuple(sizes), tuple(numbers), tuple(guarded), open_hints, rank, fast_math, joined)

    @property
    def key(self) -> str:
        # By their texts: 0.0 and -0.0 are two, and so are 1 and True.
        return repr(tuple(self))

    def program(self, module: ModuleOp, here: Settings, on: str) -> Program:
        """Compiles a graph by this recipe; machine code is made when it is first bound."""
        from tessera.lang.jit import made_fast
        from tessera.programs.compile import compile_graph
        from tessera.targets.choose_blocks import stages_for
        from tessera.transforms.core.facts import FactKind, Facts, fact

        if self.fast_math:
            module = made_fast(module)
        if self.numbers:
            module = with_numbers(module, dict(self.numbers))
        facts = Facts([fact(FactKind.SIZE, f"arg{argument}.size[{axis}]", size) for argument, axis, size in self.sizes])
        stages = stages_for(here.target, here.level, self.hints, self.rank, checks=here.checks, joined=self.joined)
        program = compile_graph(module, here, stages=stages, facts=facts, world=current_machine)
        program.device = device(on)
        return program

    def keep(self, program: Program) -> None:
        """Stores a program of this recipe in the cache."""
        keep(self.key, program)

    def find(self, here: Settings, on: Device) -> Program | None:
        """The program of this recipe that this or another process has stored."""
        program = find(self.key, here, on)
        if program is not None:
            program.world = current_machine
        return program


def with_numbers(module: ModuleOp, numbers: Mapping[int, Number]) -> ModuleOp:
    """A copy in which arguments without axes are these numbers; they stay arguments, which are not read."""
    import numpy as np
    from xdsl.rewriter import InsertPoint, Rewriter

    from tessera.interpreters.core.engine import symbol_in
    from tessera.ir.graph import dialect as graph
    from tessera.ir.graph.types import dense, graph_type

    copy = module.clone()
    block = symbol_in(copy, "main", graph.FuncOp).body.block
    for index, number in numbers.items():
        argument = block.args[index]
        found = graph_type(argument)
        known = graph.ConstantOp(dense(np.array(number, found.dtype.storage), found.dtype), found)
        Rewriter.insert_op(known, InsertPoint.at_start(block))
        argument.replace_all_uses_with(known.results[0])
    return copy


class ProgramShipment(NamedTuple):
    """A graph, recipes for it and the metas of its arguments, as another process takes them."""

    graph: str
    recipes: tuple[Recipe, ...]
    described: Described
    hidden: tuple[Meta, ...]
    settings: SentSettings

    @staticmethod
    def of(module: ModuleOp, recipes: Sequence[Recipe], call: Call, hidden: Sequence[Meta]) -> ProgramShipment:
        from tessera.ir import text

        names = ("optimization", "checks", "deterministic", "fast_math")
        sent, written = SentSettings.of(call.context.settings, names), text.write(module, locations=True)
        return ProgramShipment(written, tuple(recipes), call.described, tuple(hidden), sent)

    def build(self) -> list[str | None]:
        """Compiles all recipes into the compile cache; says for each what went wrong, None where nothing did."""
        from tessera.ir import text
        from tessera.metatracing.clients.function_programs import tensors_of

        outcome: list[str | None] = []
        with self.settings.held():
            chosen = settings()
            if chosen is None:
                return ["there is no machine code in that process"] * len(self.recipes)
            arrays = stand_ins((*self.described, *self.hidden))
            on = next((one.device for one in (*self.described, *self.hidden) if isinstance(one, Meta)), device("cpu"))
            here, module = settings_on(on, chosen), text.read(self.graph)
            for recipe in self.recipes:
                try:
                    program = recipe.program(module, here, str(on))
                    program.bind(tensors_of(arrays, on))
                    recipe.keep(program)
                    outcome.append(None)
                except TesseraError as error:
                    outcome.append(error.message)
        return outcome
