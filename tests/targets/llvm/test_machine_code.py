"""Checks LLVM text to object code: what comes out, for which machine, and what LLVM's complaints look like."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import RLock

import pytest

from tessera.errors import CompileError
from tessera.targets.llvm import elf, machine
from tessera.targets.llvm.machine import assembly, compile_text, lock_of_llvm

X86 = 'target triple = "x86_64-unknown-linux-gnu"\n'  # LLVM has all its machines on every host
ARM = 'target triple = "aarch64-unknown-linux-gnu"\n'
HOST = {"x86_64": "x86-64", "aarch64": "generic"}[os.uname().machine]
ADD = """define <16 x float> @add(<16 x float> %x, <16 x float> %y) {
  %sum = fadd <16 x float> %x, %y
  ret <16 x float> %sum
}
"""
CALLER = """
define internal i32 @one() alwaysinline {
  ret i32 1
}
define i32 @caller() {
  %x = call i32 @one()
  %y = add i32 %x, 41
  ret i32 %y
}
"""


def test_features_choose_instructions() -> None:
    text = X86 + ADD
    assert "%zmm" in assembly(text, cpu="x86-64-v4", features="")
    assert "%ymm" in assembly(text, cpu="x86-64-v3", features="")
    narrow = assembly(text, cpu="x86-64", features="")
    assert "%xmm" in narrow
    assert "%ymm" not in narrow
    assert "%zmm" in assembly(text, cpu="x86-64", features="+avx512f")
    counted = f"{ARM}define i64 @count(ptr %p) {{\n  %n = atomicrmw add ptr %p, i64 1 monotonic\n  ret i64 %n\n}}\n"
    assert "ldadd" in assembly(counted, cpu="generic", features="+lse")
    assert "ldxr" in assembly(counted, cpu="generic", features="")


def test_objects_are_elf_for_the_text_s_own_triple() -> None:
    here = {"x86_64": elf.X86_64, "aarch64": elf.AARCH64}[os.uname().machine]
    assert elf.machine_of(compile_text(CALLER, cpu="", features="")) == here
    assert elf.machine_of(compile_text(X86 + CALLER, cpu="", features="")) == elf.X86_64
    assert elf.machine_of(compile_text(ARM + CALLER, cpu="", features="")) == elf.AARCH64


def test_equal_text_gives_equal_objects() -> None:
    assert compile_text(ADD, cpu=HOST, features="") == compile_text(ADD, cpu=HOST, features="")


def test_the_lock_is_held_while_llvm_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is llvmlite's where that is known, and one of ours elsewhere; other threads wait for either."""
    known, other = lock_of_llvm("0.50.1"), lock_of_llvm("0.60.0")
    assert known is lock_of_llvm("0.50.0")
    assert type(other) is type(RLock())
    for lock in (known, other):
        monkeypatch.setattr(machine, "_lock", lock)
        with ThreadPoolExecutor(1) as pool:
            with lock:
                made = pool.submit(compile_text, ADD, cpu=HOST, features="")
                with pytest.raises(TimeoutError):
                    made.result(0.1)
            assert made.result()


def test_passes_run_only_when_asked_for() -> None:
    caller = X86 + CALLER
    assert "callq" in assembly(caller, cpu="x86-64", features="")
    inlined = assembly(caller, cpu="x86-64", features="", passes="always-inline,instcombine,globaldce")
    assert "callq" not in inlined
    assert "$42" in inlined
    assert "one:" not in inlined
    assert "$42" in assembly(caller, cpu="x86-64", features="", passes="default<O2>")
    summed = f"""{X86}define i32 @total(ptr %p) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %more, %loop ]
  %address = getelementptr i32, ptr %p, i64 %i
  %value = load i32, ptr %address
  %more = add i32 %sum, %value
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, 1024
  br i1 %done, label %end, label %loop
end:
  ret i32 %more
}}
"""
    assert "vpaddd" in assembly(summed, cpu="x86-64-v3", features="", passes="default<O3>")
    assert "vpaddd" not in assembly(summed, cpu="x86-64-v3", features="", passes="default<O1>")


def test_the_layout_holds_while_the_text_is_parsed() -> None:
    # An i128 is aligned to 16 bytes in this machine's layout, to 8 in LLVM's default one.
    text = f"""{X86}define <16 x i8> @load(ptr %p) {{
  %x = load i128, ptr %p
  %y = bitcast i128 %x to <16 x i8>
  ret <16 x i8> %y
}}
"""
    assert "movaps" in assembly(text, cpu="x86-64", features="")


@pytest.mark.parametrize(
    ("text", "line", "column", "written"),
    [
        ("define i32 @f() {\n  ret i64 0\n}\n", 2, 7, "  ret i64 0"),
        ("define i32 @f() { ret i32 %x }", 1, 27, "define i32 @f() { ret i32 %x }"),
        ("define i32 @f() { ; é\n  ret i32 %x\n}", 2, 11, "  ret i32 %x"),
        ('target triple = "x86_64-unknown-linux-gnu" nonsense', 1, 44, None),
    ],
)
def test_parse_errors_show_the_line(text: str, line: int, column: int, written: str | None) -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(text, cpu="", features="")
    assert f"line {line}, column {column} of the module" in caught.value.message
    assert caught.value.story == (written or text, f"{' ' * (column - 1)}^")


def test_text_that_ends_too_early() -> None:
    with pytest.raises(CompileError, match=r"line 3, column 1 of the module: found end of file"):
        compile_text("define i32 @f() {\n  ret i32 0\n", cpu="", features="")


def test_what_the_verifier_says_is_passed_on() -> None:
    text = """define i32 @f(i1 %c) {
  br i1 %c, label %a, label %b
a:
  %x = add i32 1, 2
  br label %b
b:
  ret i32 %x
}
"""
    with pytest.raises(CompileError, match="does not dominate all uses") as caught:
        compile_text(text, cpu="", features="")
    assert caught.value.story == ("%x = add i32 1, 2", "ret i32 %x")


def test_unknown_passes_and_triples_are_refused() -> None:
    with pytest.raises(CompileError, match="got 'fancy'"):
        compile_text(ADD, cpu="", features="", passes="sroa,fancy")
    with pytest.raises(CompileError, match="no target for the triple 'toaster-unknown'"):
        compile_text(f'target triple = "toaster-unknown"\n{ADD}', cpu="", features="")


def test_an_unknown_processor_does_not_end_the_process() -> None:
    code = f"""
from tessera.targets.llvm.machine import compile_text
print(len(compile_text({X86 + ADD!r}, cpu="toaster", features="+avx2")))
print(len(compile_text({ARM + ADD!r}, cpu="toaster", features="+lse")))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert all(int(size) > 500 for size in done.stdout.split())
    assert "not a recognized processor" in done.stderr


def test_threads_may_compile_at_once() -> None:
    def optimised(text: str) -> bytes:
        return compile_text(text, cpu=HOST, features="", passes="default<O2>")

    texts = [CALLER.replace("41", str(at)) for at in range(16)]
    alone = [optimised(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(optimised, texts)) == alone
    assert len(set(alone)) == len(texts)


def test_errors_leave_nothing_for_the_garbage_collector_to_break() -> None:
    # Collected in the wrong order, a context before its module, LLVM's objects end the process.
    code = f"""
import gc
from tessera.errors import CompileError
from tessera.targets.llvm.machine import compile_text
kept = []
for text in ["define i32 @f() {{ ret i64 0 }}", {ADD!r}]:
    try:
        compile_text(text, cpu="", features="", passes="fancy")
    except CompileError as error:
        kept.append([error, kept])
del kept
print(gc.collect())
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert int(done.stdout) > 0
