"""Real object files of every language, level of optimization and version of DWARF, built once for all tests here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.shapes import COMPILERS, SOURCES, Build
from tests.support.sharing import Shared


@pytest.fixture
def build(tmp_path: Path, shared: Shared) -> Build:
    """Compile `source` of our sources into a shared object; further arguments go to the compiler."""

    def compile_source(source: str, *arguments: str, compiler: str = "", name: str = "built.so") -> Path:
        path = SOURCES / source
        command = [compiler or COMPILERS[path.suffix], "-g", "-shared", "-fPIC", *arguments, path]
        if "-gsplit-dwarf" not in arguments:
            return shared.copied(command, tmp_path / name)
        # what is split off is put beside the result, and named there by its folder: the test's own
        subprocess.run([str(word) for word in (*command, "-o", name)], cwd=tmp_path, check=True, timeout=60)
        return tmp_path / name

    return compile_source
