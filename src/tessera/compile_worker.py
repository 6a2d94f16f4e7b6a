"""Processes that compile for another: one, which runs `main`, loads a compiler, and others fork from it.

It takes wishes for processes at a socket, its standard input, and says there when it begins to. With each come two
more, one for requests and answers and one for news: at that the number of the process is told, and in the end its
status. Closing the other end of it ends the process; so all of them end with the one that asked for them.

A request is a number, the name of a function (`module:name`) and bytes that it takes; the answer is the number, whether
it went well, and bytes: what the function returned, or what went wrong. The function does its work by side effects on
the compile cache. A process ends when its requests do, and others run a little before it.

Functions that are named on the command line load what requests will need: the first one is called once for all
processes, the others by each of them, as long as no request has come. Before that each says that it is ready, with an
answer without a request, number 0.
"""

from __future__ import annotations

import fcntl
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
from selectors import EVENT_READ, DefaultSelector
from typing import IO, NoReturn, Protocol

HEADER = struct.Struct("<QBHQ")  # the number, whether it went well, length of the name, length of the bytes
NEWS = struct.Struct("<Bi")  # which of these, and its value
NUMBER, STATUS, FAILED = range(3)  # the last where there is none, with the error's number
READY = 0
"""The number of the answer that says that a process can begin."""
_NICENESS = 1
"""A little: on few cores, with all of them busy, a process of the lowest priority would never get anywhere."""


class Readable(Protocol):
    """Where messages come from; nothing stands for the end."""

    def read(self, count: int, /) -> bytes | None: ...


def message(number: int, good: bool, name: str, data: bytes) -> bytes:
    """A request or an answer."""
    written = name.encode()
    return HEADER.pack(number, good, len(written), len(data)) + written + data


def write(stream: IO[bytes], number: int, good: bool, name: str, data: bytes) -> None:
    """Writes a request or an answer."""
    stream.write(message(number, good, name, data))
    stream.flush()


def read(stream: Readable) -> tuple[int, bool, str, bytes] | None:
    """The next request or answer; None at the end."""
    head = _exactly(stream, HEADER.size)
    if head is None:
        return None
    number, good, name_length, length = HEADER.unpack(head)
    name, data = _exactly(stream, name_length), _exactly(stream, length)
    return None if name is None or data is None else (number, bool(good), name.decode(), data)


def _exactly(stream: Readable, count: int) -> bytes | None:
    found = bytearray()
    while len(found) < count:
        part = stream.read(count - len(found))
        if not part:
            return None
        found += part
    return bytes(found)


def answered(name: str, data: bytes) -> tuple[bool, bytes]:
    """The answer to a request. An error of a request does not end the process."""
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
            with suppress(Exception):  # then a request that needs it says so
                load(name)


def load(name: str) -> None:
    """Calls a function that loads something: that is never garbage."""
    gc.disable()
    try:
        module, _, function = name.partition(":")
        getattr(import_module(module), function)()
        gc.freeze()
    finally:
        gc.enable()


def _is_heard(number: int, frame: object) -> None:
    """A handler for signals that only wake the selector."""


class Parent:
    """Forks processes on requests at a socket."""

    def __init__(self, wishes: socket.socket, names: Sequence[str]) -> None:
        self._wishes, self._names = wishes, names
        self._news: dict[int, socket.socket] = {}  # of each process
        self._hears, self._told = socket.socketpair()
        self._told.setblocking(False)

    def serve(self) -> None:
        """Forks until the socket is closed; then all of them end."""
        before = signal.signal(signal.SIGCHLD, _is_heard)
        try:
            with DefaultSelector() as selector, self._wishes, self._hears, self._told:
                signal.set_wakeup_fd(self._told.fileno())
                selector.register(self._wishes, EVENT_READ)
                selector.register(self._hears, EVENT_READ)
                with suppress(ConnectionError):
                    self._wishes.send(b"1")
                while self._has_served(selector):
                    pass
                signal.set_wakeup_fd(-1)
        finally:
            for process in self._news:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
        signal.signal(signal.SIGCHLD, before)

    def _has_served(self, selector: DefaultSelector) -> bool:
        """Does what there is to do next; False at the end."""
        wanted = True
        for key, _ in selector.select():
            if key.fileobj is self._hears:
                self._hears.recv(4096)
            elif key.fileobj is self._wishes:
                wish, ends, _, _ = socket.recv_fds(self._wishes, 1, 2)
                wanted = bool(wish)
                if len(ends) == 2:  # as long as there are descriptors left
                    self._fork(selector, *ends)
                else:
                    for end in ends:
                        os.close(end)
            elif key.data in self._news:  # nothing is ever sent there: the other end was closed
                selector.unregister(key.fileobj)
                os.kill(key.data, signal.SIGKILL)
        self._tell(selector)
        return wanted

    def _fork(self, selector: DefaultSelector, talk: int, news: int) -> None:
        os.set_inheritable(talk, False)
        os.set_inheritable(news, False)
        sender = socket.socket(fileno=news)
        process = -1
        try:
            with warnings.catch_warnings():
                # Libraries may have threads that wait for work; only this one does anything.
                warnings.simplefilter("ignore", DeprecationWarning)
                process = os.fork()
        except OSError as error:  # no memory, or too many processes
            with sender, suppress(OSError):
                sender.send(NEWS.pack(FAILED, error.errno or 0))
        if process == 0:
            self._be_child(selector, talk, sender)
        if process > 0:
            self._news[process] = sender
            selector.register(sender, EVENT_READ, process)
        os.close(talk)

    def _be_child(self, selector: DefaultSelector, talk: int, news: socket.socket) -> NoReturn:
        status = 1
        try:
            selector.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for one in (self._wishes, self._hears, self._told, *self._news.values()):
                one.close()
            with news:
                news.send(NEWS.pack(NUMBER, os.getpid()))
            with open(talk, "rb") as asked, open(talk, "wb", closefd=False) as given:
                if self._names:
                    get_ready(self._names[1:], asked, given)
                serve(asked, given)
            status = 0
        except ConnectionError:  # no process waits for the answer
            status = 0
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            os._exit(status)

    def _tell(self, selector: DefaultSelector) -> None:
        """Says how processes have ended."""
        while self._news:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            news = self._news.pop(process, None)
            if news is not None:  # a library may have started others
                with suppress(KeyError):
                    selector.unregister(news)
                with news, suppress(OSError):  # the other end may be closed
                    news.send(NEWS.pack(STATUS, os.waitstatus_to_exitcode(status)))


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def main() -> None:
    # Where a standard descriptor is closed, the socket must not take its number.
    wishes = socket.socket(fileno=fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3))
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        if standard == 0 or not _is_open(standard):
            os.dup2(nothing, standard)
    os.nice(_NICENESS)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    names = sys.argv[1:]
    for name in names[:1]:
        load(name)
    Parent(wishes, names).serve()
