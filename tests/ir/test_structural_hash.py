"""Checks the identity of IR: equal for what means the same, in every process, and different for what does not."""

from __future__ import annotations

import io
import itertools
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import singledispatch
from pathlib import Path

import pytest
from filecheck_corpus import POSITIVE as EVERY_LEVEL
from filecheck_corpus import ROOT, label
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    DenseArrayBase,
    FileLineColLoc,
    Float16Type,
    FloatAttr,
    FunctionType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.printer import Printer
from xdsl.rewriter import Rewriter

from tessera.dtypes.types import Policy, bf16, f32, loss_scale, saturate
from tessera.ir import text
from tessera.ir.common.attributes import Name, PolicyAttr, SizesAttr, integers
from tessera.ir.common.schedule_attributes import ConfigAttr
from tessera.ir.graph.types import DenseAttr, GraphTensorType
from tessera.ir.structural_hash import structural_hash
from tessera.ir.tile.types import ViewType
from tessera.shapes.expr import parse_dim

PIPES = re.compile(r"^[^/\n]*\b(pipe|nv)\.", re.MULTILINE)


def is_above_targets(path: Path) -> bool:
    """The levels of targets have their own contexts and their own tests; some passes begin there."""
    if path.parent.name == "passes":
        return PIPES.search(path.read_text(encoding="utf-8")) is None
    return not label(path).startswith(("cpu/", "nv/", "pipe/"))


POSITIVE = [path for path in EVERY_LEVEL if is_above_targets(path)]
OPS = [path for path in POSITIVE if path.parent.name != "passes"]
PER_FILE = 15


def read(path: Path) -> ModuleOp:
    return text.read(path.read_text(encoding="utf-8"), label(path))


def nameless(module: ModuleOp) -> str:
    """The generic text, which shows everything, with values numbered instead of named."""
    for op in module.walk():
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
        for value in (*op.results, *arguments):
            value.name_hint = None
    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


# Equal.


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.acceptance if index % 3 else ()) for index, path in enumerate(POSITIVE)],
    ids=label,
)
def test_names_places_and_the_order_of_attributes_do_not_matter(path: Path) -> None:
    module = read(path)
    identity = structural_hash(module)
    assert structural_hash(text.read(text.write(module))) == identity
    for number, op in enumerate(module.walk()):
        for result in op.results:
            result.name_hint = f"renamed{number}"
        op.location = FileLineColLoc(StringAttr("elsewhere.py"), IntAttr(number), IntAttr(7))
        op.attributes = dict(reversed(op.attributes.items()))
        op.properties = dict(reversed(op.properties.items()))
    assert structural_hash(module) == identity
    assert structural_hash(module.clone()) == identity


def test_the_order_inside_dictionaries_does_not_matter() -> None:
    first, second = (
        text.read(f"builtin.module attributes {{ {attributes} }} {{}}")
        for attributes in ("a = {x = 1, y = [{u, v}]}, b = 2", "b = 2, a = {y = [{v, u}], x = 1}")
    )
    assert structural_hash(first) == structural_hash(second)


@pytest.mark.acceptance
def test_every_process_agrees() -> None:
    paths = POSITIVE[:: len(POSITIVE) // 8]
    code = """
import json, sys
from pathlib import Path
from tessera.ir import text
from tessera.ir.structural_hash import structural_hash
print(json.dumps([structural_hash(text.read(Path(path).read_text("utf-8"))) for path in sys.argv[1:]]))
"""
    expected = [structural_hash(read(path)) for path in paths]
    for seed in ("1", "2"):
        command = [sys.executable, "-c", code, *map(str, paths)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        assert json.loads(output) == expected


# Different: attributes.


@singledispatch
def others(attribute: Attribute) -> list[Attribute]:
    """Attributes of the same kind that mean something else; for kinds without a rule, one of another kind."""
    return [StringAttr(f"other than {attribute}")]


@others.register
def _(attribute: Name) -> list[Attribute]:
    return [Name(attribute.data + "x")]


@others.register
def _(attribute: StringAttr) -> list[Attribute]:
    return [StringAttr(attribute.data + "x"), StringAttr(attribute.data + " ")]


@others.register
def _(attribute: SymbolRefAttr) -> list[Attribute]:
    return [SymbolRefAttr(attribute.string_value() + "x")]


@others.register
def _(attribute: SizesAttr) -> list[Attribute]:
    return [SizesAttr((*attribute.data, 1)), SizesAttr((*attribute.data, parse_dim("S + 1")))]


@others.register
def _(attribute: PolicyAttr) -> list[Attribute]:
    policy = attribute.data
    return [PolicyAttr(replace(policy, saturate=not policy.saturate)), PolicyAttr(Policy(loss_scale=2.0**40))]


@others.register
def _(attribute: ConfigAttr) -> list[Attribute]:
    config = attribute.data
    changed = replace(config, block=(*(config.block or ()), 3)), replace(config, warps=(config.warps or 0) + 1)
    return [ConfigAttr(found) for found in changed]


@others.register
def _(attribute: DenseAttr) -> list[Attribute]:
    data, indices = attribute.data, range(len(attribute.data))
    flipped = [data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :] for at in indices for bit in (1, 128)]
    return [DenseAttr(changed) for changed in (*flipped, data + b"\0")]


@others.register
def _(attribute: Float16Type) -> list[Attribute]:
    return [BFloat16Type()]


@others.register(FloatAttr)
def _(attribute: FloatAttr[AnyFloat]) -> list[Attribute]:
    number = attribute.value.data
    other = 0.0 if math.isinf(number) else math.nextafter(number, math.inf)
    return [FloatAttr(other, attribute.type), FloatAttr(-number, attribute.type)]


@others.register(IntegerAttr)
def _(attribute: IntegerAttr) -> list[Attribute]:
    return [IntegerAttr(0 if attribute.value.data else 1, attribute.type)]


@others.register(DenseArrayBase)
def _(attribute: DenseArrayBase[IntegerType]) -> list[Attribute]:
    return [integers([*attribute.iter_values(), 0])]


@others.register(ArrayAttr)
def _(attribute: ArrayAttr[Attribute]) -> list[Attribute]:
    return [ArrayAttr([*attribute, UnitAttr()])]


@others.register
def _(attribute: FunctionType) -> list[Attribute]:
    return [FunctionType.from_lists([*attribute.inputs, i64], [*attribute.outputs])]


@others.register
def _(attribute: GraphTensorType) -> list[Attribute]:
    dtypes = f32, f32 @ saturate, f32 @ loss_scale(2.0**40), f32 @ loss_scale(2.0**41), bf16
    return [attribute.with_shape((*attribute.shape, 1)), *(attribute.with_dtype(dtype) for dtype in dtypes)]


@others.register
def _(attribute: ViewType) -> list[Attribute]:
    return [ViewType(attribute.rank.data + 1, attribute.element), ViewType(attribute.rank, attribute.element, "shared")]


@others.register(TensorType)
def _(attribute: TensorType[Attribute]) -> list[Attribute]:
    return [TensorType(attribute.element_type, (*attribute.get_shape(), 1))]


def test_every_kind_of_property_has_a_rule_for_what_else_it_could_be() -> None:
    kinds = {type(attribute) for path in OPS for op in read(path).walk() for attribute in op.properties.values()}
    assert {kind for kind in kinds if others.dispatch(kind) is others.dispatch(Attribute)} == {UnitAttr}


# Different: ops. A mutation changes one op of a copy, which it finds by its number.

Mutation = Callable[[list[Operation]], None]


def mutations(module: ModuleOp) -> Iterator[tuple[str, Mutation]]:
    ops = list(module.walk())
    # Text numbers the values of each function anew, so that it can show only those of the same block.
    values: dict[tuple[Block | None, Attribute], list[tuple[int, int]]] = {}
    for number, op in enumerate(ops):
        for index, result in enumerate(op.results):
            values.setdefault((op.parent, result.type), []).append((number, index))
    for number, op in enumerate(ops):
        yield "attribute", lambda ops, n=number: ops[n].attributes.update(surprise=UnitAttr())
        for name, attribute in op.properties.items():
            for other in others(attribute):
                yield "property", lambda ops, n=number, name=name, other=other: ops[n].properties.update({name: other})
            yield "property", lambda ops, n=number, name=name: drop_property(ops[n], name)
            yield "property", lambda ops, n=number, name=name: demote_property(ops[n], name)
        for name in op.attributes:
            yield "attribute", lambda ops, n=number, name=name: drop_attribute(ops[n], name)
        for index, operand in enumerate(op.operands):
            for other in values.get((op.parent, operand.type), []):
                yield "operand", lambda ops, n=number, p=index, o=other: set_operand(ops[n], p, ops[o[0]].results[o[1]])
        if len(op.operands) > 1:
            yield "operand", lambda ops, n=number: set_operands(ops[n], ops[n].operands[::-1])
        for index, result in enumerate(op.results):
            for other in others(result.type):
                yield "type", lambda ops, n=number, p=index, o=other: retype(ops[n].results[p], o)
        for region in op.regions:
            for argument in region.blocks[0].args if region.blocks else ():
                for other in others(argument.type):
                    index = argument.index
                    yield "type", lambda ops, n=number, p=index, o=other: retype(ops[n].regions[0].block.args[p], o)
        if op.parent is not None:
            yield "order", lambda ops, n=number: duplicate(ops[n])
            if all(result.first_use is None for result in op.results):
                yield "order", lambda ops, n=number: drop(ops[n])
            if op.next_op is not None and not set(op.next_op.operands) & set(op.results):
                yield "order", lambda ops, n=number: exchange(ops[n])


def drop_property(op: Operation, name: str) -> None:
    del op.properties[name]


def demote_property(op: Operation, name: str) -> None:
    op.attributes[name] = op.properties.pop(name)


def drop_attribute(op: Operation, name: str) -> None:
    del op.attributes[name]


def set_operand(op: Operation, index: int, value: SSAValue) -> None:
    op.operands[index] = value


def set_operands(op: Operation, values: Sequence[SSAValue]) -> None:
    op.operands = values


def retype(value: SSAValue, type_: Attribute) -> None:
    Rewriter.replace_value_with_new_type(value, type_)


def duplicate(op: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_after(op.clone(), op)


def drop(op: Operation) -> None:
    op.detach()
    op.erase()


def exchange(op: Operation) -> None:
    following, block = op.next_op, op.parent
    assert following is not None
    assert block is not None
    op.detach()
    block.insert_op_after(op, following)


def sample(path: Path, count: int | None) -> list[tuple[str, Mutation]]:
    found = list(mutations(read(path)))
    if count is None or len(found) <= count:
        return found
    return random.Random(label(path)).sample(found, count)


def try_mutations(paths: list[Path], count: int | None) -> dict[str, int]:
    """Mutates copies; hash and nameless text must change together. Gives how many of each kind changed something."""
    changed: dict[str, int] = {}
    for path in paths:
        module = read(path)
        plain, identity = nameless(module.clone()), structural_hash(module)
        seen = {plain: identity}
        for kind, mutate in sample(path, count):
            copy = module.clone()
            mutate(list(copy.walk()))
            written, found = nameless(copy), structural_hash(copy)
            assert seen.setdefault(written, found) == found
            assert (found == identity) == (written == plain), f"{kind} in {label(path)}:\n{written}"
            changed[kind] = changed.get(kind, 0) + (written != plain)
        assert len(set(seen.values())) == len(seen)
    return changed


@pytest.mark.acceptance
def test_every_change_of_meaning_changes_the_hash() -> None:
    changed = try_mutations(OPS, PER_FILE)
    assert sum(changed.values()) > 350
    assert all(changed[kind] > 15 for kind in ("attribute", "property", "operand", "type", "order"))


@pytest.mark.acceptance
def test_every_change_of_meaning_changes_the_hash_everywhere() -> None:
    assert sum(try_mutations(POSITIVE, None).values()) > 10_000


# Different: numbers that look alike.

NUMBERS = [
    0.0,
    -0.0,
    0.1,
    math.nextafter(0.1, 1.0),
    1.0e22,
    math.nextafter(1.0e22, 0.0),
    5.0e-324,
    math.inf,
    -math.inf,
    *(struct.unpack("<d", bits.to_bytes(8, "little"))[0] for bits in (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1)),
]


def bits(number: float) -> str:
    return "0x" + struct.pack(">d", number).hex()


def padded(*numbers: float) -> ModuleOp:
    loads = "\n".join(
        f"  %x{index} = tile.load %v[%i] pad {bits(number)} : !tile.view<1, f64, global> -> tensor<4xf64>"
        for index, number in enumerate(numbers)
    )
    return text.read(
        "tile.func @f(%v: !tile.view<1, f64, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {\n"
        f"{loads}\n  tile.return\n}}"
    )


def constant(number: float) -> ModuleOp:
    return text.read(
        f"graph.func @f() {{\n  %c = graph.constant !graph.tensor<[], f64> = [{bits(number)}]\n  graph.return\n}}"
    )


@pytest.mark.parametrize("build", [padded, constant])
def test_numbers_are_told_apart_by_their_bits(build: Callable[[float], ModuleOp]) -> None:
    modules = [build(number) for number in NUMBERS]
    assert len({structural_hash(module) for module in modules}) == len(NUMBERS)
    assert [structural_hash(text.read(text.write(module))) for module in modules] == list(map(structural_hash, modules))


def test_equal_looking_numbers_side_by_side_are_told_apart() -> None:
    pairs = list(itertools.product((0.0, -0.0), repeat=2))
    assert len({structural_hash(padded(*pair)) for pair in pairs}) == len(pairs)


def test_the_versions_of_the_dialects_count(monkeypatch: pytest.MonkeyPatch) -> None:
    module = read(ROOT / "tile" / "dot.mlir")
    found = {structural_hash(module)}
    for name, version in list(text.VERSIONS.items()):
        with monkeypatch.context() as patch:
            patch.setitem(text.VERSIONS, name, version + 1)
            found.add(structural_hash(module))
    assert len(found) == 1 + len(text.VERSIONS)
