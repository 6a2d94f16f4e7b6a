"""The loader of compiling processes: one process loads a compiler, and they fork from it."""

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

from tessera import compile_worker, knobs, subprocesses
from tessera.forking import fork_waits_for
from tessera.tiers.logs import warn

_LONGEST_END = 5.0
"""Seconds in which a process that is to end has ended, and its status is known."""
_LAST_MOMENT = 0.2
_LONGEST_POLL = 1e3  # seconds; there are numbers that are too large for it
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
"""No SIGPIPE when the other end of a socket is closed: users set that signal for pipes of their own."""
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""Libraries would start threads that are not needed, and that spin for a while."""
# While it is held there are descriptors that a child of a fork would not know of, and keep open.
_making = threading.RLock()
fork_waits_for(_making, rank=3)


def _wait_for(one: socket.socket, event: int, until: float) -> bool:
    """Waits for a socket. Unlike `select` this takes descriptors of any number, and unlike others it needs none."""
    poller = poll()
    poller.register(one, event)
    while (left := until - time.monotonic()) > _LONGEST_POLL:
        if poller.poll(1e3 * _LONGEST_POLL):
            return True
    return bool(poller.poll(1e3 * max(0.0, left)))


class Child:
    """A process, by two sockets. It is forked once the loader has loaded: until then it has no number.

    One thread asks it, and any may end it.
    """

    def __init__(self, loader: int, talk: socket.socket, news: socket.socket) -> None:
        self.loader = loader
        """The number of the process that it forks from."""
        self._talk, self._news = talk, news
        talk.setblocking(False)
        news.setblocking(False)
        self._received: dict[int, int] = {}
        self._is_alone = False  # no process is left to send news about it
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        self._receive_news()
        return self._received.get(compile_worker.NUMBER)

    @property
    def is_missing(self) -> bool:
        """Whether no news about it has come."""
        self._receive_news()
        return not self._received

    def _receive_news(self) -> None:
        """Receives the news that have come; several threads may do that."""
        with self._lock:
            while not self._is_alone:
                try:
                    received = self._news.recv(compile_worker.NEWS.size)
                except BlockingIOError:
                    return
                except OSError:  # the other end is closed
                    received = b""
                if received:
                    kind, value = compile_worker.NEWS.unpack(received)
                    self._received[kind] = value
                else:
                    self._is_alone = True

    def send(self, data: bytes, timeout: float) -> None:
        """Sends a request; TimeoutError where it is not taken."""
        until, left = time.monotonic() + timeout, memoryview(data)
        while left:
            if not _wait_for(self._talk, POLLOUT, until):
                raise TimeoutError
            with suppress(BlockingIOError):
                left = left[self._talk.send(left, _NO_SIGNAL) :]

    def answer(self, timeout: float) -> tuple[int, bool, str, bytes] | None:
        """The next answer; None at their end, TimeoutError where there is none yet."""
        return compile_worker.read(_Answers(self._talk, time.monotonic() + timeout))

    def stop(self) -> None:
        """Has it end, and the thread that waits for its answer go on."""
        for one, how in ((self._news, socket.SHUT_WR), (self._talk, socket.SHUT_RDWR)):
            with suppress(OSError):  # the other end is closed
                one.shutdown(how)

    def end(self) -> int | None:
        """Ends it; its status, where that is known. One that is not forked yet will end at once."""
        self.stop()
        until = time.monotonic() + _LONGEST_END
        while self.pid is not None and compile_worker.STATUS not in self._received and not self._is_alone:
            if not _wait_for(self._news, POLLIN, until):
                break
        return self._received.get(compile_worker.STATUS)

    def close(self) -> None:
        """Closes the sockets: in the child of a fork, or when they are not used any more."""
        self._talk.close()
        self._news.close()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, anything may be gone
            self.close()


class _Answers:
    """A reader of a socket, until some time."""

    def __init__(self, talk: socket.socket, until: float) -> None:
        self._talk, self._until = talk, until

    def read(self, count: int, /) -> bytes:
        if not _wait_for(self._talk, POLLIN, self._until):
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
        self._fork_requests: socket.socket | None = None
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
                    (talk, talks), (news, tells) = (self._pair(ours, theirs) for _ in range(2))
                    child = Child(self._request_fork([talks.fileno(), tells.fileno()], ended), talk, news)
                    ours.pop_all()
                self._children.add(child)
                return child
        finally:
            for one in ended:  # after the lock is released: handlers of logs have locks, too
                warn(one)

    @staticmethod
    def _pair(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, socket.socket]:
        one, other = socket.socketpair()
        return ours.enter_context(one), theirs.enter_context(other)

    def _request_fork(self, ends: Sequence[int], ended: list[str]) -> int:
        """Asks for a process; the number of the one that it will fork from. Says if another one has ended."""
        with_ends = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", ends))]
        if self._process is not None and self._fork_requests is not None:
            if self._process.poll() is None:
                with suppress(ConnectionError):
                    self._fork_requests.sendmsg([b"1"], with_ends, _NO_SIGNAL)
                    return self._process.pid
            status = self._end()
            ended.append(f"the process that loads a compiler had ended, status {status}; another one is started")
        process, requests = self._started()
        requests.sendmsg([b"1"], with_ends, _NO_SIGNAL)
        return process.pid

    def _started(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if not sys.executable:
            raise OSError("there is no Python to compile with: sys.executable is empty")
        # It runs in another folder: relative paths would be looked for there.
        folders = (knobs.cache_dir, knobs.dump_dir, knobs.override_dir)
        paths = {knob.variable: os.path.abspath(knob.text) for knob in folders if knob.text}
        known = f"subprocesses.find_also({subprocesses.users_modules()!a})"
        with ExitStack() as theirs, ExitStack() as ours:
            requests, asked = self._pair(ours, theirs)
            process = subprocess.Popen(
                subprocesses.python(
                    f"from tessera import compile_worker, subprocesses; {known}; compile_worker.main()", *self._ready
                ),
                stdin=asked.fileno(),
                stdout=subprocess.DEVNULL,  # what kernels print while they are traced, they have printed here
                env=subprocesses.environment(**_ONE_THREAD, **paths),
                cwd=subprocesses.SAFE_FOLDER,
                process_group=0,  # an interrupt from a terminal is for this process, not for the other
            )
            ours.pop_all()
        self._process, self._fork_requests = process, requests
        return process, requests

    def give_up(self, child: Child) -> int | None:
        """Ends the loader of a process that was never forked; returns its status."""
        with _making:
            process = self._process
            if process is None or process.pid != child.loader:
                return None
            with suppress(subprocess.TimeoutExpired):  # its sockets go before it does
                process.wait(_LAST_MOMENT)
            return self._end()

    def _end(self) -> int | None:
        process, self._process = self._process, None
        requests, self._fork_requests = self._fork_requests, None
        if process is None or requests is None:
            return None
        with requests, suppress(OSError):
            is_serving = _wait_for(requests, POLLIN, 0)
            requests.shutdown(socket.SHUT_RDWR)
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
            self._process.returncode = 0  # this process must not wait for it
        if self._fork_requests is not None:
            self._fork_requests.close()
        self._process = self._fork_requests = None
