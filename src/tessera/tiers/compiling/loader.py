"""Where processes that compile come from: one process loads a compiler, and they fork from it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from select import POLLIN, POLLOUT, poll
from weakref import WeakSet

from tessera import compile_worker, knobs, starting
from tessera.forking import fork_waits_for
from tessera.tiers.logs import complain

_LONGEST_END = 5.0
"""Seconds in which a process that is to end has ended, and its status is known."""
_LAST_MOMENT = 0.2
_LONGEST_POLL = 1e3  # seconds; there are numbers that are too large for it
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
"""Whoever wants to be killed when nobody reads what he prints does not mean this."""
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""Libraries would start threads that nobody needs, and that turn round for a while."""
# While it is held there are descriptors that a child of a fork would not know of, and keep.
_making = threading.RLock()
fork_waits_for(_making, rank=3)


def _waited(one: socket.socket, event: int, until: float) -> bool:
    """Waits for a socket. Unlike `select` this takes descriptors of any number, and unlike others it needs none."""
    poller = poll()
    poller.register(one, event)
    while (left := until - time.monotonic()) > _LONGEST_POLL:
        if poller.poll(1e3 * _LONGEST_POLL):
            return True
    return bool(poller.poll(1e3 * max(0.0, left)))


class Child:
    """A process, by two sockets. It comes to be once the loader has loaded: until then it has no number.

    One thread asks it, and any may end it.
    """

    def __init__(self, loader: int, talk: socket.socket, news: socket.socket) -> None:
        self.loader = loader
        """The number of the process that it forks from."""
        self._talk, self._news = talk, news
        talk.setblocking(False)
        news.setblocking(False)
        self._heard: dict[int, int] = {}
        self._is_alone = False  # nobody is left to say anything about it
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        self._hear()
        return self._heard.get(compile_worker.NUMBER)

    @property
    def is_missing(self) -> bool:
        """Whether nobody has said anything about it."""
        self._hear()
        return not self._heard

    def _hear(self) -> None:
        """What there is to hear; several threads may do that."""
        with self._lock:
            while not self._is_alone:
                try:
                    told = self._news.recv(compile_worker.NEWS.size)
                except BlockingIOError:
                    return
                except OSError:  # nobody is there
                    told = b""
                if told:
                    kind, value = compile_worker.NEWS.unpack(told)
                    self._heard[kind] = value
                else:
                    self._is_alone = True

    def send(self, data: bytes, timeout: float) -> None:
        """Sends a request; TimeoutError where it is not taken."""
        until, left = time.monotonic() + timeout, memoryview(data)
        while left:
            if not _waited(self._talk, POLLOUT, until):
                raise TimeoutError
            with suppress(BlockingIOError):
                left = left[self._talk.send(left, _NO_SIGNAL) :]

    def answer(self, timeout: float) -> tuple[int, bool, str, bytes] | None:
        """The next answer; None at their end, TimeoutError where there is none yet."""
        return compile_worker.read(_Answers(self._talk, time.monotonic() + timeout))

    def stop(self) -> None:
        """Has it end, and whoever waits for its answer go on."""
        for one, how in ((self._news, socket.SHUT_WR), (self._talk, socket.SHUT_RDWR)):
            with suppress(OSError):  # nobody is there
                one.shutdown(how)

    def end(self) -> int | None:
        """Ends it; its status, where that is known. One that has not come to be will end at once."""
        self.stop()
        until = time.monotonic() + _LONGEST_END
        while self.pid is not None and compile_worker.STATUS not in self._heard and not self._is_alone:
            if not _waited(self._news, POLLIN, until):
                break
        return self._heard.get(compile_worker.STATUS)

    def close(self) -> None:
        """Lets go of the sockets: in the child of a fork, or when nobody uses them any more."""
        self._talk.close()
        self._news.close()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, anything may be gone
            self.close()


class _Answers:
    """What can be read until some time."""

    def __init__(self, talk: socket.socket, until: float) -> None:
        self._talk, self._until = talk, until

    def read(self, count: int, /) -> bytes:
        if not _waited(self._talk, POLLIN, self._until):
            raise TimeoutError
        try:
            return self._talk.recv(count)
        except ConnectionError:
            return b""


class Loader:
    """Loads a compiler in a process of its own, and has others fork from it; started when one is wanted."""

    def __init__(self, ready: Sequence[str]) -> None:
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None
        self._wishes: socket.socket | None = None
        self._children: WeakSet[Child] = WeakSet()

    @property
    def loads(self) -> bool:
        """Whether there is something to load, so that processes say when they are ready."""
        return bool(self._ready)

    def child(self) -> Child:
        """Another process; it is there as soon as the compiler is."""
        ended: list[str] = []
        try:
            with _making:
                with ExitStack() as theirs, ExitStack() as ours:
                    (talk, talks), (news, told) = (self._pair(ours, theirs) for _ in range(2))
                    child = Child(self._wish([talks.fileno(), told.fileno()], ended), talk, news)
                    ours.pop_all()
                self._children.add(child)
                return child
        finally:
            for one in ended:  # behind the lock: whoever logs has locks, too
                complain(one)

    @staticmethod
    def _pair(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, socket.socket]:
        one, other = socket.socketpair()
        return ours.enter_context(one), theirs.enter_context(other)

    def _wish(self, ends: Sequence[int], ended: list[str]) -> int:
        """Asks for a process; the number of the one that it will fork from. Says if another one has ended."""
        with_ends = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", ends))]
        if self._process is not None and self._wishes is not None:
            if self._process.poll() is None:
                with suppress(ConnectionError):
                    self._wishes.sendmsg([b"1"], with_ends, _NO_SIGNAL)
                    return self._process.pid
            status = self._end()
            ended.append(f"the process that loads a compiler had ended, status {status}; another one is started")
        process, wishes = self._started()
        wishes.sendmsg([b"1"], with_ends, _NO_SIGNAL)
        return process.pid

    def _started(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if not sys.executable:
            raise OSError("there is no Python to compile with: sys.executable is empty")
        # It stands elsewhere: what is told by relative names would be looked for there.
        told = (knobs.cache_dir.variable, knobs.dump_dir.variable, knobs.override_dir.variable)
        places = {name: os.path.abspath(os.environ[name]) for name in told if os.environ.get(name)}
        known = f"starting.find_also({starting.users_modules()!a})"
        with ExitStack() as theirs, ExitStack() as ours:
            wishes, asked = self._pair(ours, theirs)
            process = subprocess.Popen(
                starting.python(
                    f"from tessera import compile_worker, starting; {known}; compile_worker.main()", *self._ready
                ),
                stdin=asked.fileno(),
                stdout=subprocess.DEVNULL,  # what kernels print while they are traced, they have printed here
                env=starting.environment(**_ONE_THREAD, **places),
                cwd=starting.SAFE_FOLDER,
                process_group=0,  # who interrupts this process from a terminal does not mean the other one
            )
            ours.pop_all()
        self._process, self._wishes = process, wishes
        return process, wishes

    def give_up(self, child: Child) -> int | None:
        """For a process that never came to be: the one that it should have forked from is ended; its status."""
        with _making:
            process = self._process
            if process is None or process.pid != child.loader:
                return None
            with suppress(subprocess.TimeoutExpired):  # its sockets go before it does
                process.wait(_LAST_MOMENT)
            return self._end()

    def _end(self) -> int | None:
        process, self._process = self._process, None
        wishes, self._wishes = self._wishes, None
        if process is None or wishes is None:
            return None
        with wishes, suppress(OSError):
            is_serving = _waited(wishes, POLLIN, 0)
            wishes.shutdown(socket.SHUT_RDWR)
            if is_serving:  # it ends the others, and then itself
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LONGEST_END)
        process.kill()
        return process.wait()

    def close(self) -> None:
        """Ends it, and with it all that have forked from it."""
        with _making:
            self._end()

    def forked(self) -> None:
        """In the child of a fork: nothing of this is its own."""
        for child in list(self._children):
            child.close()
        if self._process is not None:
            self._process.returncode = 0  # nobody is to wait for it here
        if self._wishes is not None:
            self._wishes.close()
        self._process = self._wishes = None
