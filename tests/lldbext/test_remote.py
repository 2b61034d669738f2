"""A process behind a stub: the same answers as about a process that LLDB has attached to, with nothing from /proc."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lldbext.test_commands import normalized
from tests.support.gdb.places import RANKS, Places
from tests.support.lldb.session import Session
from tests.support.stubs import stub

COMMANDS = (
    *("rank list", "rank bt all", "rank print shared_name", "rank diff constant", "rank where shared_name"),
    *("pieglobalsfind &pair.second", "rank info 1", "rank print table", "rank tree", "rank bt 1 full"),
)
ASK = f"""
found = [ask(command) for command in {list(COMMANDS)!r}]
for index in range(process.GetNumThreads()):
    ask(f"thread select {{process.GetThreadAtIndex(index).GetIndexID()}}")
    found += [ask("thread info"), ask("bt"), ask("target variable shared_name"), ask("x/2dw `&pair`") if LENDS else ""]
tell("found", found)
tell("sum", ask("rank print shared_name + 1"))
tell("stop", process.GetStopID())
"""
CONNECT = """
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event in ("open", "os.listdir") else None)
ask("settings set plugin.process.gdb-remote.use-libraries-svr4 false")
tell("connected", ask("gdb-remote localhost:PORT"))
global process
process = target.GetProcess()
"""
STEPS = """
ask("rank 3")
tell("step", [ask("thread step-inst"), ask("next"), ask("rank print shared_name"), ask("rank list")])
tell("opened", [path for path in opened if path.startswith(f"/proc/{process.GetProcessID()}/")])
ask("breakpoint set -n spin")
tell("locations", target.GetBreakpointAtIndex(target.GetNumBreakpoints() - 1).GetNumResolvedLocations())
tell("detached", ask("detach"))
"""


@pytest.mark.parametrize("kind", ["gdbserver", "lldb-server"])
def test_a_stub_tells_what_the_kernel_tells(session: Session, places: Places, rankrun: Path, kind: str) -> None:
    asking = f"LENDS = {kind != 'gdbserver'}\n" + ASK
    local = session.attach(asking, places.pid)
    with stub(kind, places.pid) as port:
        answers = session.run(CONNECT.replace("PORT", port) + asking + STEPS, rankrun.resolve())
    names = [*COMMANDS, *(f"thread {number // 4}, {number % 4}" for number in range(4 * RANKS))]
    assert len(answers["found"]) == len(local["found"]) == len(names), answers.output
    for name, mine, other in zip(names, answers["found"], local["found"]):
        assert without_stop(mine) == without_stop(other), f"{name}: {answers.output}"
    is_refused = answers["sum"].startswith(f"0-{RANKS - 1}: <it would have to call mmap in the process")
    if kind != "gdbserver" or not is_refused:  # LLDB 23 needs no memory of the process for a sum
        assert answers["sum"] == "".join(f"{rank}: {11 + rank}\n" for rank in range(RANKS))
    assert answers["stop"] == 1, "the process has not run"
    _, after, printed, listed = answers["step"]
    assert "rank 3: running" in after and "step over" in after, answers.output
    assert printed == "".join(f"{rank}: {10 + rank}\n" for rank in range(RANKS)) and "*     3  running" in listed
    assert answers["locations"] == RANKS
    assert {Path(path).name for path in answers["opened"]} <= {"status"}, "which is how a process is known to be remote"
    assert "warning" not in answers.output and "Traceback" not in answers.output


def without_stop(answer: str) -> str:
    """Without the signal that stopped the process, its place in a loop, and LLDB's numbers of threads."""
    text = re.sub(r", stop reason = .*", "", normalized(answer))
    text = re.sub(r"0x[0-9a-f]+ places`spin.*", "spin", re.sub(r"tid = \w+", "", text))
    return re.sub(r"thread #\d+", "thread", text)
