"""Lambdas by their number of arguments, whose types are not known where any function is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]


def unary(function: Callable[[Any], Any]) -> Function:
    return function


def binary(function: Callable[[Any, Any], Any]) -> Function:
    return function


def ternary(function: Callable[[Any, Any, Any], Any]) -> Function:
    return function


def quaternary(function: Callable[[Any, Any, Any, Any], Any]) -> Function:
    return function
