"""The pool: threads that wait in machine code, so that a kernel runs on several of them within a microsecond.

The words below are in `pool.ll`; Python only starts the image that they are compiled into and sets its size.

Who may lead. A caller that wants several threads takes `owner` from 0 to 1. A caller that fails to, because another
leads or because the call is nested in a kernel, runs its kernel alone: work comes from a queue in the args block, so
any number of threads does all of it. No caller ever waits for the pool.

How a job goes.
1. The leader writes kernel, args and threads into `job`, then sets `tickets` to the number of helpers it can use.
2. A worker that sees `tickets` above 0 draws: it subtracts 1. Only if there was more than 0 *before* is the draw good.
   Workers read the other words of `job` after a good draw only.
3. The leader runs the kernel itself. When that returns, all work has been taken out of the queue, though others may be
   at it still. The leader closes the job: it exchanges `tickets` for 0. All draws and the exchange happen to one word,
   hence in one order, so what the exchange returns says exactly how many draws were good. After it, none is.
4. Each worker with a good draw adds 1 to `finished` when it is done with the kernel, as the last thing it does for this
   job. The leader subtracts the number of good draws at closing and waits for 0.

What follows from this.
- The args block may be on the leader's stack. No worker touches it after the leader has returned: with a good draw it
  is waited for; without one (late, asleep, or never scheduled) it has only looked at `tickets`, which is no job's own.
- The leader waits only for workers that are inside the kernel. One that never wakes, could not be started, or stayed
  with the parent of a fork, is not waited for, so nothing can hang on it.
- A draw after closing, or too many draws, leave `tickets` below 0. The next leader's exchange wipes that out; such
  draws were never good. There is no generation to confuse: a good draw is for the job that is open at that moment.
- A fast worker may draw twice in one job. It then finds the queue empty, under a number of its own.
- `job` is rewritten by the next leader only, who got `owner` from this one, who got `finished` from all its workers.
- A kernel may not wait for its other threads: `threads` says how many come at most.

Order in memory. Setting `tickets` releases what step 1 wrote; a draw acquires it, also through draws in between, since
those are read-modify-writes. Adding to `finished` releases a worker's results; the leader's subtraction or its last
look acquires them. `owner` is taken with acquire and given back with release.

Sleeping. A worker spins for a while, then counts itself in `sleepers` and waits on `tickets` (futex). The leader first
sets `tickets`, then reads `sleepers`; the worker first counts itself, then has the system compare `tickets` with what
it saw. All four are sequentially consistent: either the leader sees the sleeper and wakes it, or the worker does not
fall asleep. A sleep that is right by value but late (opened and closed in between) is right: nothing is open. Where too
few are awake, the leader wakes two, and each good draw that leaves tickets wakes two more. The leader waits for
`finished` in the same way, with a word that says that it sleeps. A wake that comes too late finds another wait, which
looks again.

Size. `resize` sets how many threads are wanted. Missing workers are started by the next leader that can use them.
Workers in excess leave when they are about to sleep; `resize` draws a ticket itself (and hands it in, should it be
good) so that the word under those about to sleep changes, and wakes them all. If the system refuses a thread, the pool
makes do with those it has.

Forks. A child has none of the workers. `forget` resets all words; until then the child's calls find no worker.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from tessera import knobs, python_versions
from tessera.errors import DeviceError, ResourceError
from tessera.runtime.native import code
from tessera.targets.cpu import features
from tessera.targets.llvm import image

MOST_THREADS = knobs.MOST_THREADS
OUT_OF_MEMORY = -12  # what dispatch returns where a thread's scratch memory cannot be had

_SPIN_NANOSECONDS = 100_000
_FOLDER = Path(__file__).parent


def runtime_text() -> str:
    """The runtime image as LLVM's text; the same for every level.

    Interpreters whose objects are not known go through ctypes: no code is for them.
    """
    parts = [processor_text(), _read("pool.ll"), _read("sequence.ll")]
    if python_versions.is_known():
        parts += [code.text(), _read("launch.ll")]
    return "\n".join(parts)


def processor_text() -> str:
    """LLVM text for the host's family of processors: waiting, rounding, the numbers of system calls."""
    return _read(f"{features.family()}.ll")


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def compile_runtime() -> bytes:
    """The runtime image; takes LLVM a tenth of a second, and half of one to be imported."""
    from tessera.targets.llvm.machine import compile_text

    processor = features.LEAST_PROCESSORS[features.family()]
    return image.flatten(compile_text(runtime_text(), cpu=processor, features="", passes="always-inline"))


class Runtime:
    """The runtime image in this process. It is never unmapped: its threads are inside."""

    def __init__(self, data: bytes) -> None:
        self.image = image.load(data)
        word, address, number = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int32
        # ctypes releases the interpreter lock around these.
        self.dispatch = self._function("dispatch", word, address, address, word, word)
        self.resize = self._function("resize", None, number, word)
        self.wanted = self._function("wanted", number)
        if error := self._function("prepare", number)():
            raise ResourceError(f"the system has no key for memory of threads: {os.strerror(error)}")
        self.forget = self._function("forget", None)

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        return ctypes.CFUNCTYPE(result, *arguments)(self.image.address(name))


_running: dict[str, Runtime] = {}
_asked: dict[str, int] = {}


def _forked() -> None:
    """The child has none of the threads. Of several runtimes that were started at once, the others are unmapped."""
    if found := _running.get("runtime"):
        found.forget()


os.register_at_fork(after_in_child=_forked)


def start(data: bytes | None = None) -> Runtime:
    """The runtime of this process, started if it is not: from the bytes of an image, or compiled on the spot."""
    if found := _running.get("runtime"):
        return found
    features.level()  # a process that runs kernels with tiles has asked for the permission to
    fresh = Runtime(compile_runtime() if data is None else data)
    _set(fresh, threads())
    # No lock, which a fork might leave locked: of several that start at once, the first counts.
    found = _running.setdefault("runtime", fresh)
    code.is_in(found.image)
    if "threads" in _asked:  # perhaps since then
        _set(found, _asked["threads"])
    return found


def is_running() -> bool:
    """Whether the runtime is started."""
    return "runtime" in _running


def threads() -> int:
    """How many threads a kernel runs on at most."""
    if found := _running.get("runtime"):
        return found.wanted()
    return _asked.get("threads") or knobs.num_threads.value


def set_threads(count: int) -> None:
    """Changes that number for the whole process; kernels that run keep theirs."""
    if not 1 <= count <= MOST_THREADS:
        raise DeviceError(
            f"expected a number of threads from 1 to {MOST_THREADS}, got {count}",
            hint=f"this process may use {knobs.usable_processors()} processors",
        )
    _asked["threads"] = count
    if found := _running.get("runtime"):
        _set(found, count)


def _set(runtime: Runtime, count: int) -> None:
    # With more threads than processors, one that spins keeps another from working.
    crowded = count > knobs.usable_processors()
    runtime.resize(count, 0 if crowded else _SPIN_NANOSECONDS)
