"""`rank print` in 1,000 ranks, in GDB and in LLDB, on the same jobs.

Of a program with 4,000 functions in one compilation unit, which a debugger reads anew for every rank that it visits,
and of jacobi3d, an ordinary one. The expressions are variables, an expression of variables, in GDB one with a call
and one with the rank's number, and one that has to be evaluated in every rank by itself.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.gdb_ranks import (
    ORDINARY,
    RANKS,
    compile_file,
    compile_source,
    hold,
    job,
    one_gdb,
    processor_seconds,
    rankrun,
    ranks_source,
    sourced,
)
from tests.bench.lldb_ranks import ENVIRONMENT, attach, installed, timed
from tests.bench.result import Measurement, Result
from tests.support.running import BIN

REPEAT = 3
NUMBER = "my_rank - $_rank"
CALL = "my_rank < 0 && f9(my_rank)"
ALONE = 'my_rank + $_rank_in("0")'  # a function of ours, which asks for the selected rank
APART = 1 << 32  # bytes between copies by hand
SHOWN = re.compile(r"^\(?(?:lldb\) )?\d+: ", re.MULTILINE)


def run() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        load = f"command script import {installed(place)}"
        ordinary, program = place / "jacobi3d", place / "ranks"
        compile_file(ORDINARY, [str(BIN / "rankcc"), "-O1"], ordinary, "-lm")
        compile_source(place / "ranks.c", ranks_source(), [str(BIN / "rankcc")], program)
        with job([*rankrun(RANKS), str(program)]) as pid:
            hold(pid, "f9 (")
            variable = in_gdb(pid, "my_rank")
            local = in_gdb(pid, "n")
            several = in_gdb(pid, "my_rank + total")
            address = in_gdb(pid, "&total")
            number = in_gdb(pid, NUMBER)
            call = in_gdb(pid, CALL)
            alone = in_gdb(pid, ALONE, 1)
            by_hand = read_by_hand(pid, program, place)
            lldb_variable = in_lldb(pid, load, "my_rank")
            lldb_several = in_lldb(pid, load, "my_rank + total")
        with job([*rankrun(RANKS), str(ordinary), "--size", "8", "--seconds", "1e6"], "jacobi3d: ") as pid:
            hold(pid, f"{ORDINARY.name}:")
            structure = in_gdb(pid, "faces[0]")
            ordinary_alone = in_gdb(pid, ALONE)
            lldb_structure = in_lldb(pid, load, "faces[0]")
    return Result(
        "`rank print` in many ranks",
        f"{RANKS:,} ranks in one process. Processor time of the debugger, and of what it starts, for one command "
        f"beyond attaching and loading the extension; the best of {REPEAT}. The program has 4,000 functions in one "
        "compilation unit unless noted. GDB reads the whole unit that a rank is in anew for every rank that it visits, "
        "and has no command that moves symbols it has read; the last line is what that takes in plain GDB. So only "
        "expressions that no visit is needed for are quick there.",
        (
            Measurement("GDB, a global variable", variable, "s", 1.0),
            Measurement("GDB, a local variable", local, "s", 1.0),
            Measurement("GDB, an expression of two variables", several, "s", 5.0),
            Measurement("GDB, an address, with its name in each rank", address, "s", 5.0),
            Measurement("GDB, an expression with `$_rank`", number, "s", 5.0),
            Measurement("GDB, an expression that may call a function", call, "s", 5.0),
            Measurement("GDB, jacobi3d, a struct with pointers", structure, "s", 1.0),
            Measurement("GDB, jacobi3d, an expression evaluated in every rank by itself", ordinary_alone, "s", 5.0),
            Measurement("GDB, the same with 4,000 functions in one unit", alone, "s", 5.0),
            Measurement("there, plain GDB that reads the unit 1,000 times", by_hand, "s"),
            Measurement("LLDB, a global variable", lldb_variable, "s", 1.0),
            Measurement("LLDB, an expression of two variables", lldb_several, "s", 5.0),
            Measurement("LLDB, jacobi3d, a struct with pointers", lldb_structure, "s", 1.0),
        ),
    )


def in_gdb(pid: int, expression: str, repeat: int = REPEAT) -> float:
    """Processor seconds for `rank print` in all ranks, beyond sourcing."""
    without = min(one_gdb(pid, sourced()).processor for _ in range(REPEAT))
    costs = [one_gdb(pid, sourced(f"rank print {expression}")) for _ in range(repeat)]
    check(costs[0].output, expression)
    return min(cost.processor for cost in costs) - without


def read_by_hand(pid: int, program: Path, folder: Path) -> float:
    """Processor seconds of plain GDB that is given each rank's symbols, asked for a line, and told to forget them."""
    copy, script = shutil.copy(program, folder / "by_hand"), folder / "by_hand.gdb"
    names = subprocess.run(["nm", str(program)], check=True, capture_output=True, text=True).stdout
    function = next(int(line.split()[0], 16) for line in names.splitlines() if line.endswith(" f9"))
    turn = "add-symbol-file {0} -o {1:#x}\ninfo line *{2:#x}\nremove-symbol-file {0}\n"
    places = (APART * number for number in range(1, RANKS + 1))
    script.write_text("".join(turn.format(copy, place, place + function) for place in places))
    without = min(one_gdb(pid, ()).processor for _ in range(REPEAT))
    return one_gdb(pid, (f"source {script}",)).processor - without


def in_lldb(pid: int, load: str, expression: str) -> float:
    without = min(processor_time(pid, [load])[0] for _ in range(REPEAT))
    costs = [processor_time(pid, [load, f"rank print {expression}"]) for _ in range(REPEAT)]
    check(costs[0][1], expression)
    return min(seconds for seconds, _ in costs) - without


def processor_time(pid: int, commands: Sequence[str]) -> tuple[float, str]:
    before = processor_seconds()
    words = [*attach(pid), *(word for command in commands for word in ("-o", command))]
    _, text = timed(words, ENVIRONMENT)
    return processor_seconds() - before, text


def check(text: str, expression: str) -> None:
    """Raises `RuntimeError` unless nearly every rank has a value: one that runs may have none."""
    if len(SHOWN.findall(text)) < RANKS - 10:
        raise RuntimeError(f"`rank print {expression}` failed: {text[-2000:]}")
