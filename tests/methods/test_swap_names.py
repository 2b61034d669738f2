"""Under method swap a program's variables are its own, whatever names libc keeps for old programs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.running import built

SOURCE = """
#include <mpi.h>
#include <stdio.h>
#define EACH(of) %(names)s
#define DEFINE(name) int name = 5;
EACH(DEFINE)
__attribute__((constructor)) static void begin(void) {
#define BEGIN(name) name += 1;
    EACH(BEGIN)
}
int main(int argc, char **argv) {
    int rank, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#define ADD(name) name += 10 * rank;
    EACH(ADD)
    MPI_Barrier(MPI_COMM_WORLD);
#define COMPARE(name) if (name != 6 + 10 * rank) printf("%%d: %%s is %%d\\n", rank, #name, name), wrong++;
    EACH(COMPARE)
    if (!wrong)
        printf("%%d: all right\\n", rank);
    MPI_Finalize();
    return wrong > 0;
}
"""
ONLY_OLD = re.compile(r"\b([A-Za-z]\w*)@(?!@)")
RANKS = 3


def old_names() -> list[str]:
    """What libc exports under old versions alone: new programs can't mean it, but are bound to it without a version."""
    asked = subprocess.run(["gcc", "-print-file-name=libc.so.6"], capture_output=True, text=True, check=True)
    listed = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", asked.stdout.strip()], capture_output=True, text=True, check=True
    ).stdout
    return sorted({*ONLY_OLD.findall(listed)} - {*re.findall(r"\b(\w+)@@", listed)})


def test_a_program_may_have_any_name_of_old_libcs(tmp_path: Path) -> None:
    names = old_names()
    assert "step" in names and len(names) > 20
    source = tmp_path / "names.c"
    source.write_text(SOURCE % {"names": " ".join(f"of({name})" for name in names)})
    command: list[object] = [built("rankcc"), "--method", "swap", "-fno-builtin", "-o", tmp_path / "names", source]
    subprocess.run([str(word) for word in command], check=True, timeout=100)
    done = subprocess.run(
        [built("rankrun"), "-n", str(RANKS), "--method", "swap", tmp_path / "names"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"{rank}: all right" for rank in range(RANKS)]
