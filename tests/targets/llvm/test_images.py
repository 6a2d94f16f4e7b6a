"""Checks images of machine code: they compute what LLVM's own loader computes, and whatever is damaged is refused."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from image_programs import MEMORY, PROGRAMS, STEPS, Step, text_of
from llvmlite import binding

from tessera.errors import CompileError, DeviceError, ResourceError
from tessera.targets.llvm import image as images
from tessera.targets.llvm.image import Image, flatten, load
from tessera.targets.llvm.machine import compile_text

llvm: Any = binding
HOST = os.uname().machine
LEAST, BETTER = {"x86_64": ("x86-64", "x86-64-v3"), "aarch64": ("generic", "neoverse-n1")}[HOST]
TRIPLES = {name: f'target triple = "{name}-unknown-linux-gnu"\n' for name in ("x86_64", "aarch64")}
VARIABLES = {"shown": 8, "paged": 24, "shown_zeros": 72, "tentative": 8}
EVERYTHING = [[Step(kind, n) for kind in STEPS] + [Step("call_another", n)] for n in (1, 2, 3, 12)]
COUNTER = """
@count = internal global i64 0
define i64 @next() nounwind {
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  ret i64 %new
}
"""

CONSTRUCTOR = """
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @f, ptr null }]
define void @f() {
  ret void
}
"""
HUGE = """
@big = internal global [5000000000 x i8] zeroinitializer
@small = internal global i64 0
define i64 @f() {
  %x = load i64, ptr @small
  store i8 1, ptr @big
  ret i64 %x
}
"""


def image_of(text: str, cpu: str = LEAST, opt: int = 3) -> bytes:
    return flatten(compile_text(text, cpu=cpu, features="", opt=opt))


def function(image: Image, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A callable that keeps nothing alive: the caller holds on to the image."""
    return ctypes.CFUNCTYPE(result, *arguments)(image.address(name))


def results(address: Callable[[str], int]) -> tuple[list[int], bytes, dict[str, bytes]]:
    """What @f0 gives for some values, what it leaves in memory, and what it leaves in the exported variables."""
    memory = ctypes.create_string_buffer(bytes(range(256)), MEMORY)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(address("f0"))
    returned = [call(value, ctypes.addressof(memory), 2) for value in (0, 5, 12345, -1)]
    return returned, memory.raw, {name: ctypes.string_at(address(name), size) for name, size in VARIABLES.items()}


def run_by_llvm(text: str, cpu: str, opt: int) -> tuple[list[int], bytes, dict[str, bytes]]:
    """The same, through LLVM's own just-in-time linker."""
    compile_text("", cpu="", features="")  # has LLVM initialised
    target = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, opt=opt)
    ahead = f'target triple = "{target.triple}"\ntarget datalayout = "{target.target_data}"\n'
    with llvm.create_context() as context:
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(ahead + text, context), target)
        engine.finalize_object()
        found = results(
            lambda name: engine.get_function_address(name) if name == "f0" else engine.get_global_value_address(name)
        )
        engine.close()
    return found


def check(program: list[list[Step]], cpu: str, opt: int) -> None:
    text = text_of(program)
    loaded = load(image_of(text, cpu, opt))
    assert results(loaded.address) == run_by_llvm(text, cpu, opt)


@settings(max_examples=80)
@given(PROGRAMS, st.sampled_from([LEAST, BETTER]), st.sampled_from([0, 3]))
@example(EVERYTHING, BETTER, 3)
@example(EVERYTHING, LEAST, 0)
def test_images_compute_what_llvm_s_own_loader_computes(program: list[list[Step]], cpu: str, opt: int) -> None:
    check(program, cpu, opt)


@pytest.mark.acceptance
@settings(max_examples=1000)
@given(PROGRAMS, st.sampled_from([LEAST, BETTER]), st.sampled_from([0, 1, 2, 3]))
def test_many_images_compute_what_llvm_s_own_loader_computes(program: list[list[Step]], cpu: str, opt: int) -> None:
    check(program, cpu, opt)


# For the other family they are flattened, too, though they cannot run.
@pytest.mark.parametrize(
    ("family", "kinds"), [("x86_64", {1, 2, 4, 41, 42}), ("aarch64", {257, 275, 277, 283, 286, 299, 311, 312})]
)
def test_the_programs_use_what_they_are_meant_to_use(family: str, kinds: set[int]) -> None:
    made = compile_text(TRIPLES[family] + text_of(EVERYTHING), cpu="", features="")
    assert {relocation.kind for relocation in images.elf.read(made).relocations} >= kinds
    assert flatten(made).startswith(b"TesImage")
    names = {section.name for section in images.elf.read(made).sections.values()}
    assert {".text", ".data", ".bss", ".data.rel.ro", ".rodata", ".rodata.cst16", "common tentative"} <= names


def test_equal_objects_give_equal_images() -> None:
    assert image_of(text_of(EVERYTHING)) == image_of(text_of(EVERYTHING))


def mappings() -> dict[tuple[int, int], str]:
    rows = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    return {(int(row[0].split("-")[0], 16), int(row[0].split("-")[1], 16)): row[1] for row in rows}


def protection_of(address: int) -> str | None:
    return next((flags for (start, end), flags in mappings().items() if start <= address < end), None)


def test_code_is_never_writable_and_data_never_executable() -> None:
    text = text_of(EVERYTHING).replace("@inside = constant", "@inside = dso_local constant")
    loaded = load(image_of(text))
    assert {protection_of(loaded.address(name)) for name in ("f0", "f2", "inside")} == {"r-xp"}
    assert {protection_of(loaded.address(name)) for name in (*VARIABLES, "outside")} == {"rw-p"}


@pytest.mark.parametrize("alignment", [64, 128, 4096, 65536, 1 << 21])
def test_alignments_hold(alignment: int) -> None:
    text = "\n".join(
        f"@{name} = {kind} [100 x i8] {value}, align {alignment}"
        for name, kind, value in [
            ("data", "global", f'c"{"x" * 100}"'),
            ("zeros", "global", "zeroinitializer"),
            ("constant", "constant", f'c"{"y" * 100}"'),
        ]
    )
    loaded = [load(image_of(text + COUNTER)) for _ in range(3)]
    assert {one.address(name) % alignment for one in loaded for name in ("data", "zeros", "constant")} == {0}
    assert [ctypes.string_at(loaded[0].address(name), 100) for name in ("data", "zeros", "constant")] == [
        b"x" * 100,
        bytes(100),
        b"y" * 100,
    ]


def test_images_have_their_own_data() -> None:
    data = image_of(COUNTER)
    one, two = load(data), load(data)
    first, second = function(one, "next", ctypes.c_int64), function(two, "next", ctypes.c_int64)
    assert [first(), first(), second(), first()] == [1, 2, 1, 3]


def test_only_what_is_exported_has_an_address() -> None:
    loaded = load(image_of(COUNTER + "define hidden i64 @secret() { ret i64 1 }"))
    assert loaded.names == ("next",)
    with pytest.raises(CompileError, match="got 'count'") as caught:
        loaded.address("count")
    assert caught.value.hint == "it has next"


def test_a_forked_child_has_its_own_copy() -> None:
    loaded = load(image_of(COUNTER))
    step = function(loaded, "next", ctypes.c_int64)
    step()
    child = os.fork()
    if child == 0:
        os._exit(step() * 10 + step())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 23
    assert step() == 2


def test_memory_is_given_back_with_the_image() -> None:
    loaded = load(image_of(COUNTER))
    address = loaded.address("next")
    assert protection_of(address) == "r-xp"
    del loaded
    gc.collect()
    assert protection_of(address) is None


def test_threads_inside_the_code_survive_the_end_of_the_interpreter(tmp_path: Path) -> None:
    spinning = """
define ptr @spin(ptr %flag) nounwind {
  br label %loop
loop:
  %x = load atomic i64, ptr %flag monotonic, align 8
  %stop = icmp eq i64 %x, 1
  br i1 %stop, label %done, label %loop
done:
  ret ptr null
}
"""
    (tmp_path / "image").write_bytes(image_of(spinning))
    code = f"""
import ctypes
from tessera.targets.llvm.image import load
image = load(open({str(tmp_path / "image")!r}, "rb").read())
flag, thread = ctypes.c_int64(0), ctypes.c_ulong()
libc = ctypes.CDLL(None)
assert libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(image.address("spin")), ctypes.byref(flag)) == 0
ctypes.pythonapi.Py_IncRef(ctypes.py_object(flag))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_loading_needs_no_llvm_and_no_compiler(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(image_of(COUNTER))
    code = f"""
import ctypes, sys
from tessera.targets.llvm.image import load
image = load(open({str(tmp_path / "image")!r}, "rb").read())
print(ctypes.CFUNCTYPE(ctypes.c_int64)(image.address("next"))())
print(*sorted({{name.split(".")[0] for name in sys.modules}} & {{"llvmlite", "xdsl", "click", "rich"}}))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "1\n\n"


def test_threads_may_load_and_call_at_once() -> None:
    data = image_of(COUNTER)

    def use(times: int) -> int:
        loaded = load(data)
        step = function(loaded, "next", ctypes.c_int64)
        return [step() for _ in range(times)][-1]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(1, 101))) == list(range(1, 101))


def test_loading_takes_less_than_a_millisecond() -> None:
    # 100 kB of code with constants, addresses and external calls; processor time, since the machine may be busy.
    data = image_of(text_of([[Step(kind, n) for kind in STEPS] for n in range(90)]), cpu=LEAST, opt=0)
    assert len(data) > 100_000
    taken: list[float] = []
    for _ in range(30):
        start = time.process_time()
        load(data)
        taken.append(time.process_time() - start)
    assert min(taken) < 0.001


@pytest.mark.parametrize("seed", range(4))
def test_damaged_images_are_refused_before_anything_is_mapped(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = image_of(text_of(EVERYTHING))
    random_numbers = random.Random(seed)

    def forbidden(*_: int) -> tuple[int, int]:
        raise AssertionError("memory was mapped for a damaged image")

    monkeypatch.setattr(images, "_map", forbidden)
    for at in [*range(60), *random_numbers.sample(range(len(data)), 200)]:
        flipped = bytearray(data)
        flipped[at] ^= 1 << random_numbers.randrange(8)
        with pytest.raises((ResourceError, DeviceError)):
            load(bytes(flipped))
    for length in [*range(120), *random_numbers.sample(range(len(data)), 50)]:
        with pytest.raises(ResourceError):
            load(data[:length])
    for other in [data + b"\0", data + data, b"", bytes(len(data)), random_numbers.randbytes(5000)]:
        with pytest.raises(ResourceError):
            load(other)


def test_an_image_for_another_machine_is_refused() -> None:
    data = image_of(COUNTER)
    body = data[48:]

    def with_header(version: int, machine: int) -> bytes:
        checksum = hashlib.blake2b(struct.pack("<HH", 1, machine) + body, digest_size=32).digest()
        return struct.pack("<8sHHI32s", b"TesImage", version, machine, len(body), checksum) + body

    ours, other, name = {"x86_64": (62, 183, "AArch64"), "aarch64": (183, 62, "x86-64")}[HOST]
    assert with_header(1, ours) == data
    with pytest.raises(DeviceError, match=f"image for {name} cannot run on {HOST} linux"):
        load(with_header(1, other))
    with pytest.raises(ResourceError, match="expected an image of version 1, got b'TesImage', version 2"):
        load(with_header(2, ours))


def test_a_weak_symbol_that_is_not_defined_is_null() -> None:
    text = """
declare extern_weak i64 @no_such_function()
declare extern_weak i64 @getpid()
define i64 @has() {
  %first = icmp ne ptr @no_such_function, null
  %second = icmp ne ptr @getpid, null
  %one = zext i1 %first to i64
  %two = select i1 %second, i64 2, i64 0
  %both = add i64 %one, %two
  ret i64 %both
}
"""
    kinds = {relocation.kind for relocation in images.elf.read(compile_text(text, cpu="", features="")).relocations}
    assert {"x86_64": 9, "aarch64": 312}[HOST] in kinds
    loaded = load(image_of(text))
    assert function(loaded, "has", ctypes.c_int64)() == 2


def test_a_missing_external_symbol_is_named() -> None:
    data = image_of(
        "declare i64 @no_such_function()\ndefine i64 @f() {\n  %x = call i64 @no_such_function()\n  ret i64 %x\n}"
    )
    with pytest.raises(ResourceError, match="needs 'no_such_function'"):
        load(data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CONSTRUCTOR, "constructors"),
        (HUGE, "bytes away from where it is used"),
        ("@x = thread_local global i64 0\ndefine ptr @f() {\n  ret ptr @x\n}", "thread-local data"),
        ("@x = external thread_local global i64\ndefine ptr @f() {\n  ret ptr @x\n}", "thread-local"),
        ("@x = external dso_local global i64\ndefine ptr @f() {\n  ret ptr @x\n}", "addressed as if it were near"),
        ("@x = global [8 x i8] zeroinitializer, align 4194304", "aligned to 4194304 bytes"),
        ('target triple = "riscv64-unknown-linux-gnu"\n' + COUNTER, "got one for RISC-V"),
        ('target triple = "x86_64-apple-macosx"\n' + COUNTER, "expected a 64-bit little-endian ELF object"),
        ("@x = ifunc i64 (), ptr @r\ndefine internal ptr @r() {\n  ret ptr null\n}", "chosen at load time"),
    ],
)
def test_what_an_image_cannot_hold_is_refused(text: str, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        image_of(text, cpu="")


def test_objects_that_are_not_position_independent_are_refused() -> None:
    compile_text("", cpu="", features="")
    # Of x86-64: on AArch64 the small code model has no other code.
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(reloc="static", codemodel="small")
    text = f"{TRIPLES['x86_64']}@table = internal global [9 x i64] zeroinitializer\ndefine i64 @f(i64 %i) {{\n"
    text += "  %p = getelementptr i64, ptr @table, i64 %i\n  %x = load i64, ptr %p\n  ret i64 %x\n}"
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        data = machine.emit_object(module)
    with pytest.raises(CompileError, match="addressed in a way that images do not have"):
        flatten(data)


@cache
def whole_object(family: str) -> bytes:
    return compile_text(TRIPLES[family] + text_of(EVERYTHING[:1]), cpu="", features="")


@settings(max_examples=300)
@given(st.data())
def test_damaged_objects_are_refused_or_flattened_but_never_crash(data: st.DataObject) -> None:
    whole = whole_object(data.draw(st.sampled_from([*TRIPLES])))
    headers = int.from_bytes(whole[40:48], "little")  # where the table of sections starts
    broken = bytearray(whole if data.draw(st.booleans()) else whole[: data.draw(st.integers(0, len(whole)))])
    offsets = st.integers(0, len(whole) - 1) | st.integers(headers, len(whole) - 1)
    for _ in range(data.draw(st.integers(1, 4))):
        offset = data.draw(offsets)
        if offset < len(broken):
            broken[offset] = data.draw(st.integers(0, 255))
    try:
        made = flatten(bytes(broken))
    except CompileError:
        return
    assert made.startswith(b"TesImage")
