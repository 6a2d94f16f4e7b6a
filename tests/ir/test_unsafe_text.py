"""Tests that IR text from anywhere is read or refused in time that its length explains, with little memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tessera.cli.opt import opt
from tessera.errors import CompileError, ResourceError, SourceSpan, TesseraError
from tessera.ir.text import read

SECONDS = 2.0


def attribute(text: str) -> str:
    return f"builtin.module attributes {{a = {text}}} {{}}"


# Each took time that doubles with every letter, grows with the square of the length, or all memory.
HEAVY: dict[str, tuple[str, str]] = {
    "a string without an end": ('builtin.module { "' + "a" * 50_000 + "\n}", "before closing string literal"),
    "the first token": ('"' + "a" * 50_000, "before closing string literal"),
    "escapes without an end": ('builtin.module { "' + "\\0a" * 20_000, "before closing string literal"),
    "an escape that is none": ('builtin.module { "' + "a\\n" * 20_000 + '\\q"}', "before closing string literal"),
    "a symbol without an end": ('builtin.module @"' + "a" * 50_000, "before closing string literal"),
    "many axes": (attribute("tensor<" + "1x" * 50_000 + "f32>"), "at most 4096 are read"),
    "a long name": (attribute("a" * 50_000), "at most 4096 are read"),
    "a wide integer": (attribute("1 : i999999999"), "at most 65536 bits"),
    "the width of an integer": (attribute("i" + "9" * 4000), "at most 65536 bits"),
    "one number for many": (attribute("dense<0> : tensor<999999999999xi64>"), "more than 262144 elements"),
    "one number for many, in all": (
        attribute(f"[{', '.join(['dense<0> : tensor<9999xi64>'] * 40)}]"),
        "more than 262144 elements",
    ),
    "one byte for many": (attribute('dense<"0x00"> : tensor<999999999999xi8>'), "more than 262144 elements"),
    "numbers that grow": (
        attribute(f"affine_map<(d0) -> ({' * '.join(['9999999999'] * 5_000)})>"),
        "affine maps are no part",
    ),
    "a long number": (attribute("9" * 50_000), "Exceeds the limit"),
    "a long number in base 16": (attribute("0x" + "f" * 50_000), "Exceeds the limit"),
    "lists in lists": (attribute("[" * 20_000 + "]" * 20_000), "recursion"),
    "types in types": (attribute("tuple<" * 20_000 + ">" * 20_000), "recursion"),
    "ops in ops": ("builtin.module {" * 20_000, "recursion"),
    "places in places": ('builtin.module {} loc(callsite("a" at ' + 'callsite("a" at ' * 20_000, "recursion"),
    "an op without a dialect": (f'builtin.module {{"{"a" * 50_000}"() : () -> ()}}', "is not registered"),
}


@pytest.mark.parametrize("name", HEAVY)
def test_text_that_was_too_much_for_readers_is_refused_at_once(name: str) -> None:
    text, expected = HEAVY[name]
    began = time.process_time()
    with pytest.raises(CompileError, match=expected) as caught:
        read(text, "heavy.mlir")
    assert time.process_time() - began < SECONDS
    assert len(str(caught.value)) < 2000
    assert caught.value.span is not None
    assert caught.value.span.file == "heavy.mlir"


LONG: dict[str, Callable[[int], str]] = {
    "spaces": lambda count: attribute("1" + " " * count),
    "comments": lambda count: "// a comment\n" * (count // 10) + attribute("1"),
    "a string": lambda count: attribute(f'"{"a" * count}"'),
    "escapes": lambda count: attribute('"' + "\\0a" * (count // 20) + '"'),
    "comments before a mistake": lambda count: "builtin.module {\n" + "  // x\n" * (count // 10) + '"x',
}


@pytest.mark.parametrize("name", LONG)
def test_text_that_is_merely_long_takes_time_in_proportion(name: str) -> None:
    began = time.process_time()
    try:
        read(LONG[name](200_000))
    except CompileError:
        assert "mistake" in name
    assert time.process_time() - began < SECONDS


def test_strings_are_what_they_were() -> None:
    for written in ('""', '"a"', '"a\\n\\t\\\\\\"b"', '"\\41\\00"', '"é"', '"// no comment"'):
        read(attribute(written))
    for written in ('"a', '"a\\', '"a\\"', '"\\q"', '"a\nb"', '"\\4"', '"a\vb"'):
        with pytest.raises(CompileError):
            read(attribute(written))


@pytest.mark.parametrize("file", ["/dev/zero", "/dev/stdin", "a\\00b", "/proc/self/mem", "/", "\\ff"])
def test_locations_in_a_text_name_files_that_must_not_be_opened(file: str) -> None:
    """One has no end, one waits for a keyboard, and one is no name of a file at all."""
    began = time.process_time()
    with pytest.raises(TesseraError) as caught:
        read(f'builtin.module {{ "arith.constant"() : () -> () loc("{file}":1:1) }}')
    assert str(caught.value)
    assert time.process_time() - began < SECONDS


def test_a_pipe_is_not_read_for_the_line_of_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert SourceSpan(str(tmp_path / "pipe"), 1).excerpt() == ""
    (tmp_path / "source.py").write_text("x = 1\n")
    assert "x = 1" in SourceSpan(str(tmp_path / "source.py"), 1).excerpt()


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"builtin.module {\x00}", b'builtin.module { "' + b"a" * 3000, b""]
)
def test_bytes_that_are_no_text_end_the_command_without_a_traceback(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.mlir").write_bytes(content)
    done = CliRunner().invoke(opt, [str(tmp_path / "x.mlir")])
    assert done.exception is None or isinstance(done.exception, TesseraError | SystemExit)


def test_a_result_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "x.mlir").write_text("builtin.module {}")
    done = CliRunner().invoke(opt, [str(tmp_path / "x.mlir"), "-o", str(tmp_path / "no" / "where")])
    assert isinstance(done.exception, ResourceError)


@pytest.mark.acceptance
def test_the_command_ends_at_once_for_a_string_without_an_end(tmp_path: Path) -> None:
    (tmp_path / "x.mlir").write_text('builtin.module { "' + "a" * 10_000)
    command = [sys.executable, "-c", "from tessera.cli.main import main; main()", "opt", str(tmp_path / "x.mlir")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("CompileError: cannot read IR: End of file reached before closing string literal")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["f80", "f128"])
def test_numbers_that_cannot_be_written_are_not_read(name: str) -> None:
    with pytest.raises(CompileError, match=f"{name} is not a Tessera element type"):
        read(f'"builtin.module"() ({{}}) {{x = [1.0 : {name}]}} : () -> ()')
