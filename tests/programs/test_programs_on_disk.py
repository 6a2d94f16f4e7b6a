"""Programs on the disk: host programs as JSON, kernels by what they are, another process without the IR and LLVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from program_cases import CHAIN, check_close, drawn, expected, program_of, tensor
from test_program_control import BRANCH, FIBONACCI, SCAN

from tessera import knobs
from tessera.ir import text
from tessera.programs import code, find, host, keep
from tessera.programs.lowered import host_of
from tessera.runtime.cache import store as cache
from tessera.tile.calls.settings import settings
from tessera.transforms.pipeline import compile_module

KEY = cache.key_of("test")


@pytest.fixture(name="folder", autouse=True)
def _folder(tmp_path: Path) -> Iterator[Path]:
    with knobs.cache_dir.using(tmp_path):
        yield tmp_path


def forgotten() -> None:
    """As if this process had loaded no kernel yet."""
    code._LOADED.clear()  # pyright: ignore[reportPrivateUsage]  (what a test of it needs)


@pytest.mark.parametrize("source", [CHAIN, FIBONACCI, BRANCH, SCAN.replace("REVERSE", " reverse")])
def test_host_programs_are_read_back_as_they_were_written(source: str) -> None:
    found = host_of(compile_module(text.read(source)).module)
    assert host.Host.decoded(json.loads(json.dumps(found.encoded()))) == found


def test_types_and_numbers_are_read_back() -> None:
    kind = tensor("N, 3", "bf16, accum(f32)")
    source = f"""
    graph.func @main(%a: {kind}, %n: f32, %f: i1) -> ({kind}, {tensor('"2*N"', "ui8")}) {{
      %c = graph.constant {tensor('"2*N"', "ui8")} = [7]
      graph.return %a, %c : {kind}, {tensor('"2*N"', "ui8")}
    }}"""
    found = host_of(text.read(source))
    again = host.Host.decoded(json.loads(json.dumps(found.encoded())))
    assert again == found
    assert str(again.array(0).dtype) == "bf16 @ accum(f32)"
    assert [one.kind for one in again.values if isinstance(one, host.Number)] == ["f32", "i1"]
    assert str(again.array(again.results[1]).shape[0]) == "2*N"


def test_damaged_entries_are_not_found() -> None:
    chosen = settings()
    assert chosen is not None
    program = program_of(CHAIN)
    keep(KEY, program)
    assert find(KEY, chosen) is not None
    assert find(cache.key_of("other"), chosen) is None
    for name in (entry.name for entry in cache.shared().entries()):
        data = cache.shared().get(name)
        assert data is not None
        cache.shared().put(name, data.replace(b'"is": "Host"', b'"is": "Hose"'))
    assert find(KEY, chosen) is None


def test_a_program_that_was_kept_runs_without_compiling(device: str) -> None:
    program = program_of(CHAIN, device)
    values = [drawn((9, 20)), drawn((9, 20), seed=1), drawn((20,), seed=2)]
    given = [value.to(device) for value in values]
    program.bind(given)
    assert program.codes.compiled == len(program.host.kernels)
    keep(KEY, program)
    forgotten()
    assert program.settings is not None
    found = find(KEY, program.settings)
    assert found is not None
    check_close(found.bind(given)(*given), expected(CHAIN, values))
    assert found.codes.compiled == 0
    assert found.levels.tile_ir.hash == program.levels.tile_ir.hash


def test_kernels_that_are_gone_are_compiled_again() -> None:
    program = program_of(CHAIN)
    keep(KEY, program)
    assert program.settings is not None
    forgotten()
    found = find(KEY, program.settings)
    assert found is not None
    values = [drawn((9, 20)), drawn((9, 20), seed=1), drawn((20,), seed=2)]
    check_close(found.bind(values)(*values), expected(CHAIN, values))
    assert found.codes.compiled == len(found.host.kernels)


def test_programs_share_kernels() -> None:
    kind = tensor("N")
    body = f"%s = graph.ew<add> %a, %a : {kind}, {kind} -> {kind}\n graph.return %s : {kind}"
    first = program_of(f"graph.func @main(%a: {kind}) -> ({kind}) {{ {body} }}")
    second = program_of(f"graph.func @main(%a: {kind}, %b: {kind}) -> ({kind}) {{ {body} }}")
    values = [drawn((10,)), drawn((10,))]
    assert first.bind(values[:1])(*values[:1])[0].shape == (10,)
    assert second.bind(values)(*values)[0].shape == (10,)
    assert (first.codes.compiled, second.codes.compiled) == (1, 0)


def said_by_process(folder: Path, action: str) -> dict[str, Any]:
    script = Path(__file__).with_name("program_process.py")
    done = subprocess.run(
        [sys.executable, str(script), KEY, action],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "TESSERA_CACHE_DIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_another_process_needs_neither_the_ir_nor_llvm(folder: Path) -> None:
    assert said_by_process(folder, "find") == {"found": False}
    first, second = said_by_process(folder, "keep"), said_by_process(folder, "find")
    assert (first["heavy"], first["made"]) == (["llvmlite", "xdsl"], 5)
    assert (second["heavy"], second["made"]) == ([], 0)
    assert first["values"] == second["values"]
