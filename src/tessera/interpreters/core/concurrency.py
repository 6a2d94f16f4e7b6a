"""Agents: parts of one program that run on their own and wait for each other, one at a time.

Which one goes on is drawn by chance, or in turn; a program that is right gives the same results in every order. If all
that are left wait, the program is stuck, and says who waits for what.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tessera.errors import RaceError


class _StoppedError(Exception):
    """Ends an agent because another one failed."""


@dataclass
class Agent:
    """One part: what it runs, and what it waits for, as a test and in words."""

    name: str
    work: Callable[[], None]
    ready: Callable[[], bool] = field(default=lambda: True)
    waits_for: str = "its start"
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    done: bool = False
    error: BaseException | None = None


class Agents:
    """Runs agents until all are done; `hint` says what to look at when they are stuck."""

    def __init__(self, chance: np.random.Generator | None, *, hint: str) -> None:
        self._chance = chance
        self._hint = hint
        self._agents: list[Agent] = []
        self._back = threading.Semaphore(0)
        self._current: Agent | None = None
        self._stopping = False
        self._turn = 0

    def add(self, name: str, work: Callable[[], None]) -> None:
        self._agents.append(Agent(name, work))

    def wait(self, ready: Callable[[], bool], waits_for: str) -> None:
        """Called by the agent that runs: it goes on when `ready` says so, and by chance not even then at once."""
        agent = self._current
        assert agent is not None
        if ready() and (self._chance is None or self._chance.integers(2)):
            return
        agent.ready, agent.waits_for = ready, waits_for
        self._back.release()
        agent.go.acquire()
        if self._stopping:
            raise _StoppedError

    def run(self) -> None:
        threads = [threading.Thread(target=self._life, args=(agent,), daemon=True) for agent in self._agents]
        for thread in threads:
            thread.start()
        try:
            while any(not agent.done for agent in self._agents):
                self._step()
        finally:
            self._stopping = True
            for agent in self._agents:
                agent.go.release()
            for thread in threads:
                thread.join()

    def _step(self) -> None:
        able = [agent for agent in self._agents if not agent.done and agent.ready()]
        if not able:
            stuck = [f"{agent.name} waits for {agent.waits_for}" for agent in self._agents if not agent.done]
            raise RaceError(f"nobody can go on: {'; '.join(stuck)}", hint=self._hint)
        self._turn += 1
        place = self._turn % len(able) if self._chance is None else int(self._chance.integers(len(able)))
        agent = self._current = able[place]
        agent.go.release()
        self._back.acquire()
        if agent.error is not None:
            raise agent.error

    def _life(self, agent: Agent) -> None:
        agent.go.acquire()
        try:
            if not self._stopping:
                agent.work()
        except _StoppedError:
            pass
        except BaseException as error:
            agent.error = error
        agent.done = True
        self._back.release()
