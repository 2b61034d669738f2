"""Real object files of every language, level of optimization and version of DWARF, built once for all tests here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.running import ROOT

SOURCES = ROOT / "tests" / "pieglobalsfind" / "dwarf" / "sources"
COMPILERS = {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"}


Build = Callable[..., Path]
