"""A ready workflow for GitHub Actions, which is the file `workflow.yml` beside this one."""

from __future__ import annotations

from importlib import resources


def ci_workflow() -> str:
    """Checks every change against the main branch, and keeps the main branch's results as the next baseline."""
    return resources.files("tessera.bench.reporting").joinpath("workflow.yml").read_text("utf-8")
