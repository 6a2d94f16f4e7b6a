"""Child processes: what they print is kept, they end with their parent, and the way they ended is put into words."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from tessera import subprocesses

_LAST_WORDS = 4000
"""How many characters of what a process printed are kept when it dies."""
_END_SECONDS = 2.0
"""Seconds for a process to end by itself when its pipe is closed."""
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


class Child:
    """A Python of its own that runs some code with the descriptor of its end of a pipe, and further arguments."""

    def __init__(
        self, code: str, *arguments: str, environment: Mapping[str, str], descriptors: Sequence[int] = ()
    ) -> None:
        ours, theirs = socket.socketpair()
        self.connection: Connection[Any, Any] = Connection(ours.detach())
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the process is)
        self.process = subprocess.Popen(
            subprocesses.python(code, str(theirs.fileno()), *arguments, runs_users_code=True),
            pass_fds=[theirs.fileno(), *descriptors],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=dict(environment),
            start_new_session=True,  # Ctrl-C is for us
        )
        theirs.close()

    def kill(self) -> None:
        """Ends the process and what it has started: they are a group of their own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def ended(self) -> tuple[int, str]:
        """How the process ended, now at the latest, and the last that it printed."""
        try:
            status = self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self.process.wait()
        self._log.seek(0)
        said = self._log.read()[-_LAST_WORDS:].decode("utf-8", "replace")
        self.close()
        return status, said

    def close(self) -> None:
        """Ends the process. It gets a moment to do so by itself, what it has started does not."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_SECONDS)
        self.kill()
        self.process.wait()
        self._log.close()


def end_with_parent() -> None:
    """Has this process killed when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def death_in_words(status: int) -> str:
    """How a process ended, from its return code."""
    if status >= 0:
        return f"the process ended with status {status}"
    name = signal.Signals(-status).name
    often = ", most likely by the system because memory ran out" if -status == signal.SIGKILL else ""
    return f"the process was killed by {name}{often}"


def kind_of_death(status: int) -> str:
    """As in `BenchmarkError.error_type`."""
    return "out_of_memory" if status == -signal.SIGKILL else "crash"
