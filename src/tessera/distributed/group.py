"""The group of ranks: joining it, leaving it, and how its ranks make sure that they are about to do the same thing."""

from __future__ import annotations

import atexit
import json
import struct
import sys
import time
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from typing import Any

import numpy as np

from tessera.distributed.nccl import Nccl
from tessera.errors import DeviceError, DtypeError, EffectError, ShapeError, TesseraError

BACKENDS = ("mpi", "nccl")
_WORD = struct.Struct("<16sqd")
"""A digest of what a rank is about to do, whether it refuses to, and the nanoseconds that it worked before."""
_TEXT = 4096
_SPINS = 200
"""Looks at a message before a rank sleeps in between: ranks may share processors, and who spins holds up the others."""
_LONGEST_SLEEP = 5e-4
_LAST_WORDS = 0.2
"""Seconds that launchers get to pass on what a failing rank printed."""


@dataclass(frozen=True)
class Intent:
    """The operation that a rank is about to do. Ranks go on only where all intend the same."""

    kind: str
    options: str = ""
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    device: str = ""
    refused: str = ""
    """Why this rank cannot: so the others are told instead of waiting for it."""

    def text(self) -> str:
        if self.refused:
            return f"{self.kind} cannot be done here: {self.refused}"
        what = "" if self.shape is None else f" of {self.dtype} {list(self.shape)} on {self.device}"
        return f"{self.kind}({self.options}){what}"


class ProcessGroup:
    """All ranks of the job, as one of them sees it."""

    def __init__(self, communicator: Any, byte: Any, backend: str, timeout_s: float, nccl: Nccl | None) -> None:
        self._communicator, self._byte = communicator, byte
        self.rank: int = communicator.Get_rank()
        self.size: int = communicator.Get_size()
        self.backend = backend
        self.timeout_s = timeout_s
        self.nccl = nccl
        self.broken: str | None = None
        self._last = time.perf_counter_ns()

    # Messages: all of them without blocking, so that a rank that never comes is noticed.

    def wait(self, request: Any, doing: str) -> None:
        """Until a message is there, or the patience is at its end: then the group is of no use any more."""
        deadline, pause, looks = time.monotonic() + self.timeout_s, 1e-6, 0
        while not request.Test():
            looks += 1
            if looks <= _SPINS:
                continue
            if time.monotonic() > deadline:
                self.broken = f"{doing}: not all {self.size} ranks came within {self.timeout_s:g} s"
                raise DeviceError(
                    self.broken,
                    hint="see what the other ranks printed: one has ended, hangs, or makes fewer collectives than this",
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_SLEEP)

    def gather_bytes(self, own: Any, doing: str) -> Any:
        """The bytes of all ranks, one row each."""
        found = np.empty((self.size, own.size), np.uint8)
        self.wait(self._communicator.Iallgather([own, self._byte], [found, self._byte]), doing)
        return found

    def exchange_bytes(self, parts: Any, doing: str) -> Any:
        """Row i of the parts goes to rank i; row i of the result came from there."""
        found = np.empty_like(parts)
        self.wait(self._communicator.Ialltoall([parts, self._byte], [found, self._byte]), doing)
        return found

    def broadcast_bytes(self, own: Any, root: int, doing: str) -> None:
        self.wait(self._communicator.Ibcast([own, self._byte], root), doing)

    # Agreement

    def agree(self, intent: Intent, error: TesseraError | None = None) -> tuple[int, ...]:
        """Makes sure that all ranks intend the same; the nanoseconds that each has worked since the last time.

        Where they do not, all ranks raise, and none has begun. `error` is what this rank raises for its own refusal.
        """
        if self.broken is not None:
            raise DeviceError(f"this group of ranks is broken: {self.broken}", hint="end all ranks, and start again")
        worked = time.perf_counter_ns() - self._last
        text = json.dumps([intent.kind, intent.options, intent.dtype, intent.shape, intent.device, intent.refused])
        digest = blake2b(text.encode(), digest_size=16).digest()
        word = np.frombuffer(_WORD.pack(digest, bool(intent.refused), float(worked)), np.uint8)
        words = [_WORD.unpack(row.tobytes()) for row in self.gather_bytes(word, f"meeting for {intent.kind}")]
        if any(refused or other != digest for other, refused, _ in words):
            self._refuse(intent, error)
        return tuple(int(nanoseconds) for _, _, nanoseconds in words)

    def _refuse(self, intent: Intent, error: TesseraError | None) -> None:
        """All ranks come here together: each tells what it intends, and each raises."""
        kept = [intent.kind, intent.options[:64], intent.dtype, intent.shape, intent.device, intent.refused[:480]]
        text = json.dumps(kept).encode()[:_TEXT].ljust(_TEXT)
        rows = self.gather_bytes(np.frombuffer(text, np.uint8), f"comparing what {intent.kind} is about")
        self.rested()
        if error is not None:
            raise error
        found = [Intent(*json.loads(row.tobytes())) for row in rows]
        lines = [f"rank {rank}: {one.text()}" for rank, one in enumerate(found)]
        if any(one.refused for one in found):
            raise EffectError(
                f"{intent.kind} was refused, since not all ranks can do it",
                story=lines,
                hint="see the rank that says why",
            )
        for names, kind, what in (
            (("kind", "options"), EffectError, "ranks intend different collectives"),
            (("dtype",), DtypeError, f"the tensors of {intent.kind} have different types on different ranks"),
            (("shape",), ShapeError, f"the tensors of {intent.kind} have different shapes on different ranks"),
            (("device",), DeviceError, f"the tensors of {intent.kind} are on different kinds of devices"),
        ):
            if len({tuple(map(str, (getattr(one, name) for name in names))) for one in found}) > 1:
                raise kind(what, story=lines, hint="make the same call with tensors of the same kind on every rank")
        raise EffectError(f"ranks do not agree on {intent.kind}", story=lines, hint="make the same call on every rank")

    def rested(self) -> None:
        """From now on this rank works again."""
        self._last = time.perf_counter_ns()


_groups: list[ProcessGroup] = []


def initialize_process_group(backend: str | None = None, *, timeout_s: float = 300.0) -> ProcessGroup:
    """Joins the ranks that an MPI launcher has started; a process that was started alone is rank 0 of 1.

    `backend`: "mpi", over the host's memory; "nccl", which sends tensors of GPUs directly and all others as "mpi" does;
    without one, "nccl" where this process sees a GPU and finds NCCL. After `timeout_s` without the others a collective
    gives up.
    """
    if backend is not None and backend not in BACKENDS:
        raise TesseraError(f"expected a backend among {', '.join(BACKENDS)}, got {backend!r}", hint="name one, or none")
    if timeout_s <= 0:
        raise TesseraError(f"timeout_s must be positive, got {timeout_s!r}")
    if _groups:
        raise EffectError(
            "this process is in a group of ranks already", hint="call destroy_process_group() before joining again"
        )
    mpi = _mpi()
    nccl = None
    if backend != "mpi":
        nccl = Nccl.found(required=backend == "nccl")
    made = ProcessGroup(mpi.COMM_WORLD.Dup(), mpi.BYTE, "mpi" if nccl is None else "nccl", timeout_s, nccl)
    _groups.append(made)
    try:
        made.agree(Intent("initialize_process_group", made.backend))
    except TesseraError:
        _groups.clear()
        raise
    return made


def _mpi() -> Any:
    loaded = "mpi4py.MPI" in sys.modules
    try:
        if not loaded:
            import_module("mpi4py").rc(finalize=False)
        found: Any = import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise TesseraError(
            f"ranks talk to each other through MPI, which cannot be loaded: {error}",
            hint="pip install 'tessera-lang[dist]' (mpi4py and an MPI), then start with mpiexec -n 2 python …",
        ) from None
    if found.Is_finalized():
        raise TesseraError("MPI has ended in this process, and starts only once", hint="start a new process")
    if not loaded:
        atexit.register(_end, found)
    return found


def _end(mpi: Any) -> None:
    """When the process ends. One that fails takes the others along: they would wait for it."""
    if mpi.Is_finalized():
        return
    failed = getattr(sys, "last_value", None) is not None
    if _groups and (failed or _groups[0].broken) and _groups[0].size > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(_LAST_WORDS)
        mpi.COMM_WORLD.Abort(1)
    mpi.Finalize()


def current_group(what: str) -> ProcessGroup:
    """The group that this process is in."""
    if not _groups:
        raise EffectError(
            f"{what}: this process is in no group of ranks", hint="call tessera.distributed.initialize_process_group()"
        )
    return _groups[0]


def is_initialized() -> bool:
    """Whether this process is in a group."""
    return bool(_groups)


def get_rank() -> int:
    """This process's number, from 0."""
    return current_group("get_rank").rank


def get_world_size() -> int:
    """How many ranks there are."""
    return current_group("get_world_size").size


def destroy_process_group() -> None:
    """Leaves the group, together with all other ranks. It can be joined again."""
    group = current_group("destroy_process_group")
    group.agree(Intent("destroy_process_group"))
    if group.nccl is not None:
        group.nccl.close()
    _groups.clear()
