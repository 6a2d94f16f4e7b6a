"""How the tests are run: steady hypothesis examples, and peers that must be there when they are asked for."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import settings

from gpu_lock import gpu_lock
from quick_tests import leave_to_acceptance

PEERS = ("torch", "jax")

gc.disable()  # what is collected stays: while thousands of tests are, to look for garbage takes a quarter of the time
os.environ["TESSERA_FULL_TRACEBACKS"] = "1"  # of a test that fails, all frames are to be seen
os.environ["TESSERA_VERIFY"] = "1"  # a pass that breaks a module is named at once
# Matmuls of tests are small: threads of NumPy's would spin after each, on a processor that another test needs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if "TESSERA_CACHE_DIR" not in os.environ:  # what tests compile is kept for one run; worker processes inherit the folder
    _cache = TemporaryDirectory(prefix="tessera-tests-", ignore_cleanup_errors=True)
    os.environ["TESSERA_CACHE_DIR"] = _cache.name

# Timing belongs to benchmarks; machines that run tests are busy. `make acceptance` explores; `make test` repeats, and
# takes half as many examples of each property as it asks for, and so many at most.
QUICK_EXAMPLES = 6
settings.register_profile("steady", deadline=None, derandomize=True, database=None, max_examples=QUICK_EXAMPLES)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-peers", action="store_true", help=f"fail, do not skip, where {' or '.join(PEERS)} is missing"
    )


def pytest_configure(config: pytest.Config) -> None:
    missing = [name for name in PEERS if find_spec(name) is None]
    if config.getoption("--require-peers") and missing:
        raise pytest.UsageError(f"--require-peers: {', '.join(missing)} not installed; install the `peers` extra")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_to_acceptance(items)
    items.sort(key=lambda item: "bench" in item.path.parts)  # what measures comes last: types are checked meanwhile
    if settings.get_current_profile_name() != "steady":
        return
    quick = {getattr(item, "obj", None) for item in items if "acceptance" not in item.keywords}
    for test in cast("set[Any]", quick):
        asked: settings | None = getattr(test, "_hypothesis_internal_use_settings", None)
        if asked is not None:
            few = min(QUICK_EXAMPLES, (asked.max_examples + 1) // 2)
            test._hypothesis_internal_use_settings = settings(asked, max_examples=few)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)  # compilers make much that lives until they are done
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _what_is_there_stays() -> None:
    """What other files have loaded and made is not looked at again and again by collections of garbage.

    There are a million objects where torch and JAX are loaded, and benchmarks collect before everything they measure.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if "gpu" not in item.keywords:
        return (yield)
    with gpu_lock(alone="alone" in item.keywords):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and item.config.getoption("--require-peers") and item.get_closest_marker("peers"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and --require-peers asks for it to run: {report.longrepr}"
    return report
