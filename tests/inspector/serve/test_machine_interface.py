"""GDB's machine interface, as cppdbg, CLion and Emacs speak it, through the server and without any extension."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.gdb.places import Places
from tests.support.rsp import is_stopped, listening
from tests.support.waiting import wait_until

RANK = 1
COMMANDS = (
    "-gdb-set sysroot /",
    "-gdb-set remotetimeout 60",
    "-gdb-set mi-async off",
    "-target-select extended-remote ADDRESS",
    "-thread-info",
    "-stack-list-frames",
    "-stack-select-frame LEVEL",
    "-stack-list-variables --thread 1 --frame LEVEL --simple-values",
    "-data-evaluate-expression shared_name",
    "-data-evaluate-expression file_static",
    "-var-create - * pair.second",
    "-target-detach",
    "-gdb-exit",
)


def conversation(gdb: Path, address: str, level: int) -> str:
    typed = "".join(f"{command}\n" for command in COMMANDS).replace("ADDRESS", address).replace("LEVEL", str(level))
    words = [str(gdb), "-nx", "-q", "--interpreter=mi3", "-iex", "set debuginfod enabled off"]
    return subprocess.run(words, input=typed, capture_output=True, text=True, timeout=120, check=True).stdout


def test_a_rank_is_a_process(gdb: Path, places: Places) -> None:
    with listening(places.pid, "--rank", RANK, "--port", 0) as (address, _):
        frames = re.findall(r'level="(\d+)",[^}]*?func="(\w+)"', conversation(gdb, address, 0))
        level = next(int(number) for number, function in frames if function == "main")
        said = conversation(gdb, address, level)
    assert f'name="rank {RANK}"' in said and 'details="blocked in MPI_Recv from 2, tag 6"' in said, said
    assert f'{{name="rank",type="int",value="{RANK}"}}' in said, said
    for name in ("shared_name", "file_static", "pair"):
        assert f'value="{places.owned[RANK, name].value}"' in said, (name, said)
    wait_until(lambda: not is_stopped(places.pid), "the job was left stopped")
