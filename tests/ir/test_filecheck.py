"""Checks every op's text and every pass's work by the files under tests/filecheck, and that no file is missing."""

from __future__ import annotations

import ast
import inspect
import io
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType

import pytest
from filecheck_corpus import INVALID, INVALID_ROOT, POSITIVE, ROOT, Case, cases_of, label, mismatch, run_opt, runs_of
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

import tessera.interpreters.levels.pipe_warp_groups
import tessera.ir
import tessera.targets.cpu
import tessera.targets.cuda
from tessera.errors import CompileError, TesseraError
from tessera.interpreters.core.engine import RULES
from tessera.interpreters.levels.graph import run_function
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.graph import dialect as graph
from tessera.ir.graph import effects as graph_effects
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cpu.interpreter import run_cpu_kernel
from tessera.targets.cpu.ir import dialect as cpu
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.interpreter.nv import run_nv_kernel
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.passes import ALL_PASSES
from tessera.targets.text import structural_hash

CASES = [case for path in INVALID for case in cases_of(path)]
OPERATIONS = [op for dialect in text.DIALECTS for op in dialect.operations]

MEANINGS = (tessera.interpreters.levels.pipe_warp_groups,)  # importing the interpreters fills RULES

# Not run by a rule of their own.
RUN_OTHERWISE: dict[type[Operation], str] = {
    graph.FuncOp: f"{run_function.__name__} and graph.call run its body",
    tile.FuncOp: f"{run_kernel.__name__} runs its body, once per point of the grid",
    cpu.FuncOp: f"{run_cpu_kernel.__name__} runs its body",
    nv.FuncOp: f"{run_nv_kernel.__name__} runs its body, {run_warpgroups.__name__} that of one for sm_90a",
    graph_effects.StateOp: "a declaration: state_read and state_write find the slot by its name",
}

# Raised for IR that text cannot spell, or that another check has refused already.
UNREACHABLE = {
    ("ir/common/functions.py", "verify_header"): "regions are declared with a single block",
    ("ir/graph/types.py", "graph_type"): "operands and results are declared to be graph tensors",
    ("targets/cpu/ir/types.py", "_verify_shape"): "text spells no negative sizes",
}


@cache
def read(path: Path) -> ModuleOp:
    """A file, for those who only look at it."""
    return text.read(path.read_text(encoding="utf-8"), label(path))


# What the files say.


@pytest.mark.parametrize("path", POSITIVE, ids=label)
def test_the_output_is_what_the_file_says(path: Path) -> None:
    for run in runs_of(path.read_text(encoding="utf-8")):
        output = run_opt(str(path), run.options)
        assert (problem := mismatch(path, output, run.prefix)) is None, problem
        # What passes write reads back; guards are comments.
        printed = "".join(line for line in output.splitlines(keepends=True) if not line.startswith("// guard:"))
        assert text.write(text.read(output)) == printed


def generic(module: ModuleOp) -> str:
    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


def located(module: ModuleOp) -> str:
    return text.write(module, locations=True)


# The quick run takes one way for each file, in turn.
WAYS = (text.write, generic, located)


@pytest.mark.parametrize(
    ("path", "way"),
    [
        pytest.param(path, way, marks=() if (one + other) % len(WAYS) == 0 else pytest.mark.acceptance)
        for one, path in enumerate(POSITIVE)
        for other, way in enumerate(WAYS)
    ],
    ids=lambda given: label(given) if isinstance(given, Path) else given.__name__,
)
def test_every_way_of_writing_reads_back(path: Path, way: Callable[[ModuleOp], str]) -> None:
    module = read(path)
    written = way(module)
    again = text.read(written)
    assert text.write(again) == text.write(module)
    assert structural_hash(again) == structural_hash(module)
    assert way(again) == written


def test_the_harness_refuses_what_it_does_not_understand(tmp_path: Path) -> None:
    for line in (
        "// RUN: tessera opt %s | filecheck %s | sort",
        "// RUN: tessera opt %s",
        "// RUN: tessera demo | filecheck %s",
        "// RUN: not tessera opt %s | filecheck %s",
        "// RUN: tessera opt %s | filecheck %s --match-full-lines",
    ):
        with pytest.raises(ValueError, match="expected `tessera opt"):
            runs_of(line)
    with pytest.raises(ValueError, match="no RUN line"):
        runs_of("// CHECK: builtin.module\n")
    path = tmp_path / "checks.mlir"
    path.write_text("// CHECK: one\n// CHECK-NEXT: two\n// OTHER-NOT: one\n")
    assert mismatch(path, "one\ntwo\n", "CHECK") is None
    assert mismatch(path, "one\nor\ntwo\n", "CHECK")
    assert mismatch(path, "one\n", "OTHER")
    assert "No check strings found" in (mismatch(path, "one\n", "NONE") or "")
    path.write_text("graph.state @s : f32\n")
    with pytest.raises(ValueError, match="a case has one `// expected:`"):
        cases_of(path)


# What must be refused.


@cache
def refusal(case: Case) -> TesseraError | None:
    """The error that a case raises, as users see it."""
    try:
        if case.options:
            run_opt("-", case.options, case.text)
        else:
            text.read(case.text, label(case.path))
    except TesseraError as error:
        return error
    return None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_wrong_is_refused_in_its_place(case: Case) -> None:
    error = refusal(case)
    assert error is not None, "this was accepted"
    assert case.expected in str(error)
    assert error.hint
    if not case.options:
        assert isinstance(error, CompileError)
        assert error.is_located
    if error.is_located:
        assert error.span is not None
        assert error.span.file == (label(case.path) if not case.options else "-")
        assert error.span.line == case.line
        assert 0 <= error.span.column <= len(case.text.splitlines()[case.line - 1])


def file_in_package(path: Path) -> str:
    """`ir/tile/types.py`; a file of another package as it is."""
    (package,) = tessera.__path__
    return path.relative_to(package).as_posix() if path.is_relative_to(package) else str(path)


def raise_sites() -> set[tuple[str, str, int]]:
    """File, function and line of every `raise VerifyException` of the dialects."""
    found: set[tuple[str, str, int]] = set()
    packages = (tessera.ir, tessera.targets.cpu, tessera.targets.cuda)
    folders = [Path(folder) for package in packages for folder in package.__path__]
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Raise) and "VerifyException" in ast.unparse(node):
                    found.add((file_in_package(path), function.name, node.lineno))
    return found


def raised_at(error: BaseException | None) -> Iterator[tuple[str, str, int]]:
    """Where the verification errors behind an error were raised."""
    while error is not None:
        trace = error.__traceback__
        while isinstance(error, VerifyException) and trace is not None:
            code = trace.tb_frame.f_code
            yield file_in_package(Path(code.co_filename)), code.co_name, trace.tb_lineno
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def test_every_verification_error_is_reached() -> None:
    reached = {line for case in CASES for line in raised_at(refusal(case))}
    missed = raise_sites() - reached
    assert {(file, function) for file, function, _ in missed} == set(UNREACHABLE)
    assert len(missed) == len(UNREACHABLE)


# Text that is not meant.

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[%@!#]?[A-Za-z_][\w.]*|-?\d[\w.]*|->|\s+|.', re.DOTALL)


def garbled(text_: str, vocabulary: list[str], source: random.Random) -> str:
    """The text with one to three tokens left out, doubled, or replaced by others."""
    tokens = TOKEN.findall(text_)
    positions = [position for position, token in enumerate(tokens) if not token.isspace()]
    for position in source.sample(positions, source.randint(1, 3)):
        similar = [token for token in vocabulary if token[0] == tokens[position][0]]
        tokens[position] = source.choice(
            ["", f"{tokens[position]} " * 2, source.choice(vocabulary), source.choice(similar)]
        )
    return "".join(tokens)


def try_garbled(count: int) -> int:
    """Reads garbled files, as they are and in generic form; gives how many were still valid."""
    source = random.Random(0)
    texts: list[str] = []
    for path in POSITIVE:
        stream = io.StringIO()
        module = read(path)
        Printer(stream, print_generic_format=True).print_op(module)
        texts += [text.write(module), stream.getvalue()]
    vocabulary = sorted({token for found in texts for token in TOKEN.findall(found) if not token.isspace()})
    valid = 0
    for _ in range(count):
        try:
            module = text.read(garbled(source.choice(texts), vocabulary, source))
        except CompileError:
            continue
        written = text.write(module)
        assert text.write(text.read(written)) == written
        valid += 1
    return valid


def test_no_text_crashes_the_reader() -> None:
    assert 2 < try_garbled(100) < 96


@pytest.mark.acceptance
def test_no_text_of_thousands_crashes_the_reader() -> None:
    assert try_garbled(5000) > 100


# That no file is missing.


def missing_parts(op: type[Operation]) -> list[str]:
    """What an op lacks: assembly, files, meaning or checks."""
    dialect, _, name = op.name.partition(".")
    positive, invalid = ROOT / dialect / f"{name}.mlir", INVALID_ROOT / dialect / f"{name}.mlir"
    uses = positive in POSITIVE and any(isinstance(found, op) for found in read(positive).walk())
    blames = invalid in INVALID and any(op.name in case.text for case in cases_of(invalid))
    has_rule = op in RULES or op in RUN_OTHERWISE or op.has_trait(IsTerminator)
    return [
        part
        for part, there in {
            "a custom assembly format": op.parse != Operation.parse and op.print != Operation.print,
            "a file of valid cases": uses,
            "a file of invalid cases": blames,
            "an interpreter rule": has_rule,
            "a verifier or constraints": has_verifier(op) or is_constrained(op),
        }.items()
        if not there
    ]


def has_verifier(op: type[Operation]) -> bool:
    # xDSL wraps the verifier that a class defines or inherits.
    assert isinstance(op.verify_, FunctionType)
    return inspect.getclosurevars(op.verify_).nonlocals.get("custom_verify") is not Operation.verify_


def is_constrained(op: type[Operation]) -> bool:
    assert issubclass(op, IRDLOperation)
    definition = op.get_irdl_definition()
    # What takes nothing is held to what it gives.
    values = definition.operands or definition.results
    return op.has_trait(HasParent, value_if_unregistered=False) or any(
        "AnyAttr" not in repr(value.constr) for _, value in values
    )


@irdl_op_definition
class MadeUpOp(IRDLOperation):
    """An op that has nothing it should."""

    name = "graph.made_up"


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_every_op_has_all_its_parts(op: type[Operation]) -> None:
    assert missing_parts(op) == []


def test_the_check_sees_what_is_missing() -> None:
    assert missing_parts(MadeUpOp) == [
        "a custom assembly format",
        "a file of valid cases",
        "a file of invalid cases",
        "an interpreter rule",
        "a verifier or constraints",
    ]


def test_the_exceptions_are_ours() -> None:
    assert set(RUN_OTHERWISE) <= set(OPERATIONS)
    assert not set(RUN_OTHERWISE) & set(RULES)


def parts(attribute: Attribute) -> Iterator[Attribute]:
    """An attribute and everything inside it."""
    yield attribute
    if isinstance(attribute, ParametrizedAttribute):
        inner = attribute.parameters
    else:
        inner = attribute if isa(attribute, ArrayAttr) else ()
    for part in inner:
        yield from parts(part)


def test_every_attribute_is_in_some_file() -> None:
    used: set[type[Attribute]] = set()
    for path in POSITIVE:
        for op in read(path).walk():
            arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
            held = [*op.properties.values(), *op.attributes.values()]
            held += [value.type for value in (*op.results, *arguments)]
            used |= {type(part) for attribute in held for part in parts(attribute)}
    registered = {attribute for dialect in text.DIALECTS for attribute in dialect.attributes}
    assert registered - used == set()


def test_every_pass_has_its_files_and_every_file_its_pass() -> None:
    named = {path: {name for name in ALL_PASSES if path.stem.startswith(f"{name}-")} for path in POSITIVE}
    files = [path for path in POSITIVE if path.parent.name == "passes"]
    assert set().union(*(named[path] for path in files)) == set(ALL_PASSES)
    for path in files:
        assert len(named[path]) == 1, f"{path.name} is not named after a pass"
        options = " ".join(" ".join(run.options) for run in runs_of(path.read_text(encoding="utf-8")))
        assert next(iter(named[path])) in options


def test_every_file_belongs_to_an_op_or_a_pass() -> None:
    names = {op.name.replace(".", "/") for op in OPERATIONS}
    assert {label(path) for path in POSITIVE if path.parent.name != "passes"} == names
    stems = {path.relative_to(INVALID_ROOT).with_suffix("").as_posix() for path in INVALID}
    assert names <= stems
    assert stems - names <= {f"passes/{name}" for name in (*ALL_PASSES, "legality")}


@pytest.mark.acceptance
def test_the_tools_of_xdsl_know_our_dialects_and_passes() -> None:
    path = ROOT / "passes" / "canonicalize-identities.mlir"
    command = [str(Path(sys.executable).with_name("xdsl-opt")), str(path), "-p", "tessera-canonicalize"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.strip() == run_opt(str(path), ("-p", "canonicalize")).strip()
