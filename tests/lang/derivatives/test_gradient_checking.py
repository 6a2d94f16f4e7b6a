"""`check_grad` finds rules that are wrong, and says nothing of those that are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradient_checks import binary, unary

import tessera as ts
from tessera import knobs
from tessera.errors import TesseraError


@pytest.fixture(autouse=True)
def in_the_interpreter() -> Any:
    with knobs.interpret.using(True):
        yield


def test_what_is_right() -> None:
    x = ts.asarray(np.linspace(-1, 1, 5, dtype=np.float32))
    report = ts.check_grad(binary(lambda tree, n: ts.sum(ts.sin(tree["x"]) * n, axis=0)), {"x": x}, 3, order=2)
    assert report.forward < 1e-8
    assert report.backward < 1e-12
    assert report.second is not None
    assert ts.check_grad(ts.exp, 1.5).second is None


def test_a_wrong_rule_is_found() -> None:
    forwards = ts.custom_jvp(ts.sin)
    forwards.defjvp(binary(lambda primals, tangents: (ts.sin(primals[0]), tangents[0] * ts.sin(primals[0]))))
    with pytest.raises(TesseraError, match=r"a tangent is not the slope: they differ by .*"):
        ts.check_grad(forwards, ts.ones((3,)))


def test_a_kink_is_told() -> None:
    with pytest.raises(TesseraError, match="there is a kink"):
        ts.check_grad(unary(lambda x: ts.maximum(x, 2.0 * x)), 4e-6)


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(TesseraError, match="no argument is a float"):
        ts.check_grad(unary(lambda x: x), 3)
    with pytest.raises(TesseraError, match="order is 1 or 2"):
        ts.check_grad(unary(lambda x: x), 3.0, order=3)
