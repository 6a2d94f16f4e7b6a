"""Processes that compile for another: `python -m tessera.compile_worker` loads a compiler, and others fork from it.

It takes wishes for processes at a socket, its standard input: three pipes' ends, for requests, for answers, and for
what becomes of the process, which is its number and, in the end, its status. It ends when the socket does.

A request is a number, the name of a function (`module:name`) and bytes that it takes; the answer is the number, whether
it went well, and bytes: what the function returned, or what went wrong. The function does its work by side effects on
the compile cache. A process ends when its requests do, and others run a little before it.

Functions that are named on the command line load what requests will need: the first one is called once for all
processes, the others by each of them, as long as no request has come. Before that each says that it is ready, with an
answer that nobody has asked for, number 0.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import struct
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from select import select
from typing import IO, NoReturn

HEADER = struct.Struct("<QBHQ")  # the number, whether it went well, length of the name, length of the bytes
NEWS = struct.Struct("<i")  # the number of a process, and then its status
READY = 0
"""The number of the answer that says that a process can begin."""
_NICENESS = 1
"""A little: on few cores, with all of them busy, a process that lets everybody go first would never get anywhere."""


def write(stream: IO[bytes], number: int, good: bool, name: str, data: bytes) -> None:
    """Writes a request or an answer."""
    written = name.encode()
    stream.write(HEADER.pack(number, good, len(written), len(data)) + written + data)
    stream.flush()


def read(stream: IO[bytes]) -> tuple[int, bool, str, bytes] | None:
    """The next request or answer; None at the end."""
    head = _exactly(stream, HEADER.size)
    if head is None:
        return None
    number, good, name_length, length = HEADER.unpack(head)
    name, data = _exactly(stream, name_length), _exactly(stream, length)
    return None if name is None or data is None else (number, bool(good), name.decode(), data)


def _exactly(stream: IO[bytes], count: int) -> bytes | None:
    found = bytearray()
    while len(found) < count:
        part = stream.read(count - len(found))
        if not part:
            return None
        found += part
    return bytes(found)


def answered(name: str, data: bytes) -> tuple[bool, bytes]:
    """What a request comes to. Nothing that goes wrong ends the process."""
    try:
        module, _, function = name.partition(":")
        return True, getattr(import_module(module), function)(data)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}".encode(errors="replace")


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answers requests until there are no more."""
    while (request := read(requests)) is not None:
        number, _, name, data = request
        good, answer = answered(name, data)
        write(answers, number, good, name, answer)


def get_ready(names: Sequence[str], requests: IO[bytes], answers: IO[bytes]) -> None:
    """Says that requests may come, and loads what they may need besides as long as none has come."""
    write(answers, READY, True, "", b"")
    for name in names:
        if not select([requests], [], [], 0)[0]:
            load(name)


def load(name: str) -> None:
    """Calls a function that loads something: that is never garbage."""
    gc.disable()
    module, _, function = name.partition(":")
    getattr(import_module(module), function)()
    gc.freeze()
    gc.enable()


def _is_heard(number: int, frame: object) -> None:
    """For signals that wake somebody, and do nothing else."""


class Parent:
    """Forks processes for whoever asks for them at a socket."""

    def __init__(self, wishes: socket.socket, names: Sequence[str]) -> None:
        self._wishes, self._names = wishes, names
        self._news: dict[int, int] = {}  # where to say how a process has ended
        self._hears, self._told = socket.socketpair()
        self._told.setblocking(False)

    def serve(self) -> None:
        """Forks until nobody can ask any more."""
        before = signal.signal(signal.SIGCHLD, _is_heard)
        with self._wishes, self._hears, self._told:
            signal.set_wakeup_fd(self._told.fileno())
            while self._has_served():
                pass
            signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, before)

    def _has_served(self) -> bool:
        """Does what there is to do next; False at the end."""
        ready, _, _ = select([self._wishes, self._hears], [], [])
        if self._hears in ready:
            self._hears.recv(4096)
            self._tell()
        if self._wishes not in ready:
            return True
        wish, ends, _, _ = socket.recv_fds(self._wishes, 1, 3)
        if wish:
            self._fork(*ends)
        return bool(wish)

    def _fork(self, requests: int, answers: int, news: int) -> None:
        try:
            with warnings.catch_warnings():
                # Libraries may have threads that wait for work; only this one does anything.
                warnings.simplefilter("ignore", DeprecationWarning)
                process = os.fork()
        except OSError as error:  # no memory, or too many processes: whoever asked finds the pipes closed, and goes on
            sys.stderr.write(f"no process can be forked to compile: {error}\n")
            os.close(news)
        else:
            if process == 0:
                self._be_child(requests, answers, news)
            self._news[process] = news
        os.close(requests)
        os.close(answers)

    def _be_child(self, requests: int, answers: int, news: int) -> NoReturn:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for one in (self._wishes, self._hears, self._told):
                one.close()
            for other in self._news.values():
                os.close(other)
            os.write(news, NEWS.pack(os.getpid()))
            os.close(news)
            with open(requests, "rb") as asked, open(answers, "wb") as given:
                if self._names:
                    get_ready(self._names[1:], asked, given)
                serve(asked, given)
            status = 0
        except BrokenPipeError:  # nobody waits for the answer
            status = 0
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            os._exit(status)

    def _tell(self) -> None:
        while self._news:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            news = self._news.pop(process)
            with suppress(BrokenPipeError):  # nobody wants to know
                os.write(news, NEWS.pack(os.waitstatus_to_exitcode(status)))
            os.close(news)


def main() -> None:
    wishes = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    names = sys.argv[1:]
    for name in names[:1]:
        load(name)
    Parent(wishes, names).serve()


if __name__ == "__main__":
    main()
