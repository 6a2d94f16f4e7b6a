"""Small kernels in LLVM's text for the tests of the pool and of launching, and what the tests use to call them."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tessera.runtime.native import pool
from tessera.targets.cpu import features
from tessera.targets.llvm.image import Image, flatten, load

KERNELS = """
declare i32 @usleep(i32)

; Nothing, at once.
define i64 @empty(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
  ret i64 0
}

; out[i] = value for each i below n.                                       slots: 8 out, 9 n, 10 value (f32)
define i64 @fill(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
entry:
  %out_at = getelementptr i64, ptr %args, i64 8
  %n_at = getelementptr i64, ptr %args, i64 9
  %value_at = getelementptr i64, ptr %args, i64 10
  br label %next
next:
  %i = atomicrmw add ptr %args, i64 1 monotonic
  %n = load i64, ptr %n_at
  %more = icmp slt i64 %i, %n
  br i1 %more, label %store, label %end
store:
  %out = load ptr, ptr %out_at
  %value = load float, ptr %value_at
  %at = getelementptr float, ptr %out, i64 %i
  store float %value, ptr %at
  br label %next
end:
  ret i64 0
}

; total[0] += sum of values, in pieces of 16; scratch holds the piece.     slots: 8 values, 9 number of pieces, 10 total
define i64 @sum(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
entry:
  %values_at = getelementptr i64, ptr %args, i64 8
  %n_at = getelementptr i64, ptr %args, i64 9
  %total_at = getelementptr i64, ptr %args, i64 10
  br label %next
next:
  %i = atomicrmw add ptr %args, i64 1 monotonic
  %n = load i64, ptr %n_at
  %more = icmp slt i64 %i, %n
  br i1 %more, label %load, label %end
load:
  %values = load ptr, ptr %values_at
  %at = getelementptr <16 x i64>, ptr %values, i64 %i
  %piece = load <16 x i64>, ptr %at, align 8
  store volatile <16 x i64> %piece, ptr %scratch, align 64
  %kept = load volatile <16 x i64>, ptr %scratch, align 64
  %sum = call i64 @llvm.vector.reduce.add.v16i64(<16 x i64> %kept)
  %total = load ptr, ptr %total_at
  %before = atomicrmw add ptr %total, i64 %sum monotonic
  br label %next
end:
  ret i64 0
}
declare i64 @llvm.vector.reduce.add.v16i64(<16 x i64>)

; Counts itself in board[0] and waits, not for ever, until everybody has come: board[1] is how many met, and
; board[2 + thread] how often that thread came.                            slots: 8 board, 9 patience in turns
define i64 @meet(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
entry:
  %board_at = getelementptr i64, ptr %args, i64 8
  %turns_at = getelementptr i64, ptr %args, i64 9
  %board = load ptr, ptr %board_at
  %turns = load i64, ptr %turns_at
  %place = add i64 %thread, 2
  %mine = getelementptr i64, ptr %board, i64 %place
  %often = atomicrmw add ptr %mine, i64 1 monotonic
  %come = atomicrmw add ptr %board, i64 1 seq_cst
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %next, %wait ]
  %here = load atomic i64, ptr %board seq_cst, align 8
  %all = icmp sge i64 %here, %threads
  br i1 %all, label %end, label %wait
wait:
  call void @relax()
  %next = add i64 %turn, 1
  %tired = icmp sge i64 %next, %turns
  br i1 %tired, label %end, label %look
end:
  %met = getelementptr i64, ptr %board, i64 1
  %before = atomicrmw max ptr %met, i64 %here monotonic
  ret i64 0
}

; Looks for work of another call. board[0] counts the threads inside, board[1] says which call is on, board[2] counts
; mistakes: an argument that is not this call's.                           slots: 8 board, 9 number of call, 10 turns
define i64 @witness(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
entry:
  %board_at = getelementptr i64, ptr %args, i64 8
  %call_at = getelementptr i64, ptr %args, i64 9
  %turns_at = getelementptr i64, ptr %args, i64 10
  %board = load ptr, ptr %board_at
  %on_at = getelementptr i64, ptr %board, i64 1
  %mistakes_at = getelementptr i64, ptr %board, i64 2
  %inside = atomicrmw add ptr %board, i64 1 seq_cst
  br label %next
next:
  %i = atomicrmw add ptr %args, i64 1 monotonic
  %call = load volatile i64, ptr %call_at
  %on = load atomic i64, ptr %on_at seq_cst, align 8
  %right = icmp eq i64 %call, %on
  %wrong = xor i1 %right, true
  %one = zext i1 %wrong to i64
  %mistakes = atomicrmw add ptr %mistakes_at, i64 %one monotonic
  %turns = load i64, ptr %turns_at
  %more = icmp slt i64 %i, %turns
  br i1 %more, label %next, label %end
end:
  %left = atomicrmw sub ptr %board, i64 1 seq_cst
  ret i64 0
}

; Every thread finds the same failure; one of them tells.                  slots: 8 code
define i64 @fail(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
entry:
  %status_at = getelementptr i64, ptr %args, i64 1
  %code_at = getelementptr i64, ptr %args, i64 8
  %code = load i64, ptr %code_at
  %swap = cmpxchg ptr %status_at, i64 0, i64 %code seq_cst seq_cst
  %won = extractvalue { i64, i1 } %swap, 1
  br i1 %won, label %tell, label %end
tell:
  %base = getelementptr i64, ptr %args, i64 2
  store <6 x i64> <i64 20, i64 30, i64 -40, i64 50, i64 60, i64 9223372036854775807>, ptr %base, align 8
  br label %end
end:
  ret i64 0
}

; Copies the slots from 8 on to out.                                       slots: 8 out, 9 … 15
define i64 @echo(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
  %out_at = getelementptr i64, ptr %args, i64 8
  %out = load ptr, ptr %out_at
  %slots = load <8 x i64>, ptr %out_at, align 8
  store <8 x i64> %slots, ptr %out, align 8
  ret i64 0
}

; Fills the scratch with the thread's number, waits, and counts what others wrote into it: board[0] mistakes, board[1]
; misaligned.                                                              slots: 8 board, 9 bytes
define i64 @scribble(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
entry:
  %board_at = getelementptr i64, ptr %args, i64 8
  %bytes_at = getelementptr i64, ptr %args, i64 9
  %board = load ptr, ptr %board_at
  %bytes = load i64, ptr %bytes_at
  %number = ptrtoint ptr %scratch to i64
  %low = and i64 %number, 63
  %misaligned_at = getelementptr i64, ptr %board, i64 1
  %misaligned = atomicrmw add ptr %misaligned_at, i64 %low monotonic
  br label %write
write:
  %i = phi i64 [ 0, %entry ], [ %i_next, %write ]
  %at = getelementptr i8, ptr %scratch, i64 %i
  store volatile i64 %thread, ptr %at, align 8
  %i_next = add i64 %i, 8
  %written = icmp sge i64 %i_next, %bytes
  br i1 %written, label %rest, label %write
rest:
  %slept = call i32 @usleep(i32 100)
  br label %read
read:
  %j = phi i64 [ 0, %rest ], [ %j_next, %read ]
  %from = getelementptr i8, ptr %scratch, i64 %j
  %found = load volatile i64, ptr %from, align 8
  %differs = icmp ne i64 %found, %thread
  %one = zext i1 %differs to i64
  %mistakes = atomicrmw add ptr %board, i64 %one monotonic
  %j_next = add i64 %j, 8
  %read_all = icmp sge i64 %j_next, %bytes
  br i1 %read_all, label %end, label %read
end:
  ret i64 0
}

; Writes into its scratch, launches another kernel from inside, and looks whether the scratch is as it was.
; slots: 8 board: [0] mistakes, [1] the inner status; 9 dispatch, 10 the inner kernel, 11 its args, 12 its scratch
define i64 @nest(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
entry:
  %board_at = getelementptr i64, ptr %args, i64 8
  %dispatch_at = getelementptr i64, ptr %args, i64 9
  %kernel_at = getelementptr i64, ptr %args, i64 10
  %inner_at = getelementptr i64, ptr %args, i64 11
  %bytes_at = getelementptr i64, ptr %args, i64 12
  %board = load ptr, ptr %board_at
  %dispatch = load ptr, ptr %dispatch_at
  %kernel = load ptr, ptr %kernel_at
  %inner = load ptr, ptr %inner_at
  %bytes = load i64, ptr %bytes_at
  %i = atomicrmw add ptr %args, i64 1 monotonic
  %mine = icmp eq i64 %i, 0
  br i1 %mine, label %go, label %end
go:
  store volatile i64 123456789, ptr %scratch, align 8
  %status = call i64 %dispatch(ptr %kernel, ptr %inner, i64 8, i64 %bytes)
  %after = load volatile i64, ptr %scratch, align 8
  %differs = icmp ne i64 %after, 123456789
  %one = zext i1 %differs to i64
  %mistakes = atomicrmw add ptr %board, i64 %one monotonic
  %status_at = getelementptr i64, ptr %board, i64 1
  store i64 %status, ptr %status_at
  br label %end
end:
  ret i64 0
}

; How rounding is set, for each thread.                                    slots: 8 board
define i64 @rounding(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
  %board_at = getelementptr i64, ptr %args, i64 8
  %board = load ptr, ptr %board_at
  %mode = call i64 @float_mode()
  %at = getelementptr i64, ptr %board, i64 %thread
  store i64 %mode, ptr %at
  %slept = call i32 @usleep(i32 200)
  ret i64 0
}

; Not a kernel: sets, and tells, how rounding is set in the thread that calls.
define void @set_rounding(i64 %mode) {
  call void @set_float_mode(i64 %mode)
  ret void
}
define i64 @get_rounding() {
  %mode = call i64 @float_mode()
  ret i64 %mode
}

; Counts itself in board[0] and stays inside until board[1] is set.         slots: 8 board
define i64 @hold(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
entry:
  %board_at = getelementptr i64, ptr %args, i64 8
  %board = load ptr, ptr %board_at
  %free_at = getelementptr i64, ptr %board, i64 1
  %inside = atomicrmw add ptr %board, i64 1 seq_cst
  br label %look
look:
  %slept = call i32 @usleep(i32 100)
  %free = load atomic i64, ptr %free_at seq_cst, align 8
  %held = icmp eq i64 %free, 0
  br i1 %held, label %look, label %end
end:
  ret i64 0
}

; Takes its time.                                                          slots: 8 microseconds
define i64 @sleep(ptr %args, i64 %thread, i64 %threads, ptr %scratch) {
  %time_at = getelementptr i64, ptr %args, i64 8
  %time = load i64, ptr %time_at
  %short = trunc i64 %time to i32
  %slept = call i32 @usleep(i32 %short)
  ret i64 0
}
"""

# The counter that programs may read: on AArch64 the one of cycles is the system's.
COUNTER = {"x86_64": "llvm.readcyclecounter", "aarch64": "llvm.readsteadycounter"}[features.family()]
# What the lines that say only "delay" become: mostly nothing, sometimes a pause, a turn for others, or a sleep.
DELAYS = f"""
declare i64 @{COUNTER}()
declare i32 @usleep(i32)
declare i32 @sched_yield()
define internal void @delay() nounwind {{
entry:
  %time = call i64 @{COUNTER}()
  %mixed = mul i64 %time, -7046029254386353131
  %high = lshr i64 %mixed, 56
  %yields = icmp ult i64 %high, 24
  br i1 %yields, label %yield, label %others
yield:
  %yielded = call i32 @sched_yield()
  ret void
others:
  %sleeps = icmp ult i64 %high, 32
  br i1 %sleeps, label %sleep, label %perhaps
sleep:
  %more = lshr i64 %mixed, 30
  %some = and i64 %more, 255
  %short = trunc i64 %some to i32
  %slept = call i32 @usleep(i32 %short)
  ret void
perhaps:
  %pauses = icmp ult i64 %high, 96
  br i1 %pauses, label %pause, label %return
pause:
  %turn = phi i64 [ 0, %perhaps ], [ %next, %pause ]
  call void @relax()
  %next = add i64 %turn, 1
  %enough = icmp ugt i64 %next, %high
  br i1 %enough, label %return, label %pause
return:
  ret void
}}
"""


def image_of(text: str) -> bytes:
    from tessera.targets.llvm.machine import compile_text  # not by processes that get images ready made

    processor = features.LEAST_PROCESSORS[features.family()]
    return flatten(compile_text(text, cpu=processor, features="", passes="always-inline"))


def kernels_text() -> str:
    """The kernels, and what depends on the processor: that is the pool's own."""
    return pool.processor_text() + KERNELS


def delayed_runtime_text() -> str:
    """The runtime with pauses of random length at every point where the order of threads matters."""
    text = pool.runtime_text()
    assert text.count("  ; delay\n") > 10
    return text.replace("  ; delay\n", "  call void @delay()\n") + DELAYS


@cache
def kernels() -> Image:
    """The kernels above, and the pool started; in a process of `run_process` from images that its parent compiled."""
    if folder := os.environ.get("POOL_PROGRAMS_IMAGES"):
        pool.start((Path(folder) / "runtime").read_bytes())
        return load((Path(folder) / "kernels").read_bytes())
    return load(image_of(kernels_text()))


@cache
def stored_images() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory()
    (Path(folder.name) / "runtime").write_bytes(pool.compile_runtime())
    (Path(folder.name) / "kernels").write_bytes(image_of(kernels_text()))
    return folder


def block(*slots: int) -> bytes:
    """A template with these slots from word 8 on."""
    return bytes(64) + struct.pack(f"<{len(slots)}q", *slots)


class Block:
    """An args block in memory of its own, aligned as a launch aligns it."""

    def __init__(self, *slots: int) -> None:
        content = block(*slots)
        self.size = len(content)
        self._memory = ctypes.create_string_buffer(self.size + 64)
        self.address = (ctypes.addressof(self._memory) + 63) & ~63
        ctypes.memmove(self.address, content, self.size)

    def poison(self) -> None:
        """Whoever reads it from now on finds addresses that nobody may use."""
        ctypes.memset(self.address, 0xDD, self.size)


def run_process(arguments: list[str], seconds: float = 60, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python process and all its children, none of which outlives this call."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parent,
        env={**os.environ, "POOL_PROGRAMS_IMAGES": stored_images().name, **environment},
    )
    try:
        said, complained = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, complained = process.communicate()
        complained += f"\nstood still for {seconds} s"
    return subprocess.CompletedProcess(arguments, process.returncode, said, complained)


def workers() -> list[int]:
    """The pool's threads in this process, as the system sees them."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        try:
            if (task / "comm").read_text().strip() == "tessera-worker":
                found.append(int(task.name))
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
    return found


@contextmanager
def threads(count: int) -> Generator[None]:
    before = pool.threads()
    pool.set_threads(count)
    try:
        yield
    finally:
        pool.set_threads(before)
