"""Programs and libraries linked in several ways, and the system's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SOURCE = """
#include <stddef.h>
int data = 5; static int *pointer = &data; int zeros[100]; _Thread_local int local = 3; const char text[] = "text";
static void inner(void) { zeros[1]++; }
void (*table[])(void) = {inner, inner, NULL};
int entry(void) { inner(); return *pointer + local; }
int main(void) { return entry(); }
"""
WAYS = {
    "library": ["-shared", "-fPIC"],
    "relr": ["-shared", "-fPIC", "-Wl,-z,pack-relative-relocs"],
    "pie": ["-pie", "-fPIE"],
    "fixed": ["-no-pie"],
    "stripped": ["-shared", "-fPIC", "-s"],
    "unnamed": ["-shared", "-fPIC", "-Wl,--build-id=none"],
}


def built(folder: Path, way: str) -> Path:
    """The source above as `way` says."""
    (folder / "source.c").write_text(SOURCE)
    path = folder / way
    subprocess.run(["gcc", "-g", "-o", str(path), str(folder / "source.c"), *WAYS[way]], check=True, timeout=60)
    return path


def library(name: str) -> Path:
    """A library of the system by its name."""
    path = Path("/usr/lib/x86_64-linux-gnu") / name
    if not path.exists():
        pytest.skip(f"{path} is not installed")
    return path
