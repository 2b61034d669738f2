"""What ranks of `-pieglobals` allocate in C, before and after they have moved to another process."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.charm.jobs import AMPICC, COPIES, build

pytestmark = pytest.mark.skipif(not AMPICC, reason="CHARM_HOME is not set and ampicc is not on PATH")
RANKS = 4
TURNS = 3
SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { NUMBERS = 1000 };
PRIVATE int g_rank = -1;
int main(int count, char **words) {
  int *numbers, lost = 0;
  char *text;
  MPI_Info hints;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "ampi_load_balance", "sync");
  numbers = realloc(malloc(16), NUMBERS * sizeof *numbers);
  for (int i = 0; i < NUMBERS; i++) numbers[i] = NUMBERS * (g_rank + 1) + i;
  text = strdup("a rank's own"); /* which libc allocates, and the program frees */
  for (int turn = 0; turn < 3; turn++) {
    AMPI_Migrate(hints);
    for (int i = 0; i < NUMBERS; i++) lost += numbers[i] != NUMBERS * (g_rank + 1) + i;
    printf("TURN %d in %d lost %d\n", g_rank, (int)getpid(), lost);
    fflush(stdout);
  }
  printf("SAYS %d %s\n", g_rank, text);
  fflush(stdout);
  free(text);
  free(numbers);
  printf("FREED %d\n", g_rank);
  fflush(stdout);
  MPI_Finalize();
  fflush(stdout);
  return 0;
}
"""


@pytest.fixture(scope="module", params=COPIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("allocation")
    build(made, request.param, "c", with_hook=True, source=SOURCE)
    return made


def _run(folder: Path, wish: str) -> subprocess.CompletedProcess[str]:
    command = ["./charmrun", "++local", "+p2", "./prog", f"+vp{RANKS}", "+balancer", "RotateLB"]
    environment = dict(os.environ, RANKDEBUG=wish)
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
        stdin=subprocess.DEVNULL,
    )


def test_it_moves_with_the_rank_and_can_be_freed_there(folder: Path) -> None:
    done = _run(folder, "malloc")
    turns = re.findall(r"^TURN (\d) in (\d+) lost (\d+)$", done.stdout, re.MULTILINE)
    assert sorted(int(rank) for rank, _, _ in turns) == sorted(list(range(RANKS)) * TURNS), done.stdout
    assert {lost for _, _, lost in turns} == {"0"}, done.stdout
    assert all(len({pid for number, pid, _ in turns if int(number) == rank}) == 2 for rank in range(RANKS))
    for word in (r"SAYS (\d) a rank's own", r"FREED (\d)"):
        assert sorted(re.findall(rf"^{word}$", done.stdout, re.MULTILINE)) == list("0123"), done.stdout
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_being_asked_the_module_changes_nothing(folder: Path) -> None:
    """Stock AMPI leaves the numbers behind, and libc's free() meets what another allocator has given."""
    done = _run(folder, "")
    losses = re.findall(r"^TURN \d in \d+ lost (\d+)$", done.stdout, re.MULTILINE)
    assert losses and any(int(losse) for losse in losses), done.stdout
    assert "FREED" not in done.stdout and done.returncode != 0, done.stdout
