"""Installs into the environment that runs it: with uv, which unpacks in parallel, and with pip where that fails.

    python .ci/install.py REQUIREMENT...

uv is given pip's own settings: indexes, folders of wheels, certificates.
"""

import os
import subprocess
import sys
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}


def uv_environment() -> dict[str, str]:
    """The environment, with what pip is told in its files and variables in uv's words."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True).stdout
    made = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        name = SETTINGS.get(key.rpartition(".")[2])
        values = [one for one in value.strip("'\"").split() if is_there(one)]
        if name is not None and values:
            made[name] = ("," if name == "UV_FIND_LINKS" else " ").join(values)
    return {**made, **os.environ}


def is_there(location: str) -> bool:
    """Whether a location of pip's may be asked: folders that are missing are passed over, as pip does."""
    return "://" in location.removeprefix("file://") or Path(location.removeprefix("file://")).exists()


def installed_with_uv(requirements: list[str]) -> bool:
    """Whether uv could be had, and installed all of it."""
    had = subprocess.run([*PIP, "install", "--quiet", "--only-binary=:all:", "uv"], check=False, capture_output=True)
    if had.returncode != 0:
        return False
    install = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--python", sys.executable]
    return subprocess.run([*install, *requirements], check=False, env=uv_environment()).returncode == 0


if __name__ == "__main__":
    if not installed_with_uv(sys.argv[1:]):
        pip = [*PIP, "install", "--quiet", "--no-compile", *sys.argv[1:]]
        sys.exit(subprocess.run(pip, check=False).returncode)
