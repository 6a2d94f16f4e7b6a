"""Lambdas of tests with the types that strict checks ask for: of one to three parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def unary(function: Callable[[Any], Any]) -> Function:
    return function


def binary(function: Callable[[Any, Any], Any]) -> Function:
    return function


def ternary(function: Callable[[Any, Any, Any], Any]) -> Function:
    return function
