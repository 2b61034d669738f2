"""Which folders are installed, and under which names: those of three are taken on PyPI, so they get names of ours."""

import os
from pathlib import Path

from setuptools import find_packages, setup

NAMES = {
    "pieglobalsfind": "pieglobalsfind",
    "gdbext": "ranklens_gdbext",
    "lldbext": "ranklens_lldbext",
    "inspector": "ranklens_inspector",
}


def installed_name(package: str) -> str:
    top, dot, rest = package.partition(".")
    return NAMES[top] + dot + rest


def shared_files() -> list[tuple[str, list[str]]]:
    """Man pages and completions, where `make wheel` has written them, by their folder below the prefix."""
    folders = [(Path(folder), names) for folder, _, names in os.walk("build/share") if names]
    return [(str(folder.relative_to("build")), [str(folder / name) for name in names]) for folder, names in folders]


setup(
    data_files=shared_files(),
    packages=[
        installed_name(package) for folder in NAMES for package in find_packages(include=[folder, f"{folder}.*"])
    ],
    package_dir={name: folder for folder, name in NAMES.items()},
)
