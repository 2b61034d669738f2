"""The embedded runtime for AArch64, cross-compiled, and its programs under qemu-user; skipped without these tools."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.running import ROOT
from tests.support.sharing import Shared

PREFIX = "aarch64-linux-gnu-"
SYSROOT = Path("/usr/aarch64-linux-gnu")
PACKAGES = "{gcc,g++,gfortran}-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
HERE = Path(__file__).parent
TOOLS = {"CC": "gcc", "CXX": "g++", "FC": "gfortran", "AR": "ar", "NM": "nm", "OBJCOPY": "objcopy"}
NEEDED = ("librankmpi.so", "librank_libc.a", "shared.list")


def emulator() -> str:
    """qemu's emulator of AArch64 programs; the test is skipped where there is none, or no cross compiler."""
    found = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    compilers = [shutil.which(f"{PREFIX}{name}") for name in ("gcc", "g++", "gfortran")]
    if found is None or None in compilers or not SYSROOT.exists():
        pytest.skip(f"AArch64 programs can't be built or run: apt-get install {PACKAGES}")
    return found


@dataclass(frozen=True)
class Aarch64:
    """`runtime` has bin, lib and include, as build/runtime has."""

    runtime: Path
    emulator: str
    shared: Shared

    @property
    def environment(self) -> dict[str, str]:
        """For programs and rankcc."""
        words = {"QEMU_LD_PREFIX": str(SYSROOT), "RANK_EMULATOR": self.emulator}
        return {**os.environ, **words, "RANK_CC": f"{PREFIX}gcc", "RANK_FC": f"{PREFIX}gfortran"}

    def built(self, method: str, *options: str, source: str = "program.c") -> Path:
        """The program of this folder."""
        name = "-".join((source, method, *(option.strip("-").replace("=", "_") for option in options)))
        compiler = self.runtime / "bin" / ("rankcc" if source.endswith(".c") else "rankfort")
        command = [compiler, "--method", method, "-g", *options, HERE / source, "-o"]

        def make(folder: Path) -> None:
            words = [str(word) for word in (*command, folder / "program")]
            subprocess.run(words, cwd=folder, check=True, env=self.environment, timeout=200)

        return self.shared.made(name, make) / "program"

    def command(self, method: str, program: Path, ranks: int, *options: object) -> Sequence[object]:
        """What runs a program; `-cpu max` has pointer authentication."""
        rankrun = self.runtime / "bin" / "rankrun"
        return (self.emulator, "-cpu", "max", rankrun, "-n", ranks, "--method", method, *options, program)


def make_runtime(folder: Path) -> None:
    tools = [f"{name}={PREFIX}{tool}" for name, tool in TOOLS.items()]
    headers = [path.name for path in (ROOT / "runtime-hooks/embedded/mpi/include").glob("*.h")]
    wanted = [folder / "lib" / name for name in NEEDED]
    wanted += [folder / "bin" / name for name in ("rankrun", "rankcc", "rankfort")]
    wanted += [folder / "include" / name for name in (*headers, "mpi.mod")]
    command = ["make", "--silent", "-j2", "-C", ROOT / "runtime-hooks", f"OUT={folder}", *tools]
    subprocess.run([str(word) for word in (*command, *wanted)], check=True, timeout=280)


@pytest.fixture(scope="session")
def aarch64(shared: Shared) -> Aarch64:
    runs_programs = emulator()
    return Aarch64(shared.made("aarch64", make_runtime), runs_programs, shared)
