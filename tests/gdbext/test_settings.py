"""`set rank ...`: what it changes, and that it changes nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.gdbext.symbols.test_sight import VALUES, check
from tests.support.gdb.places import RANKS, Places, compile_program, hold, make_core
from tests.support.gdb.session import EXTENSION, Session
from tests.support.running import StartJob


def test_unfolded(session: Session, places: Places) -> None:
    answers = session.attach(
        """
gdb.execute("rank 1")
tell("folded", ask("bt"))
tell("own", ask("rank bt"))
gdb.execute("set rank fold-runtime off")
tell("shown", ask("show rank fold-runtime"))
tell("unfolded", ask("bt"))
gdb.execute("rank 1")
tell("innermost", ask("frame"))
tell("own unfolded", ask("rank bt"))
""",
        places.pid,
    )
    assert "is off" in answers["shown"]
    for folded, unfolded in (("folded", "unfolded"), ("own", "own unfolded")):
        left = answers[folded].splitlines()
        all_frames = [line for line in answers[unfolded].splitlines() if line.startswith("#")]
        count = int(next(line for line in left if "folded" in line)[1:].split()[0])
        kept = [line for line in left if line.startswith("#")]
        assert all_frames[0].startswith("#1 ") and len(all_frames) == count + len(kept)
        assert [line.split(" from ")[0] for line in all_frames[count + 1 :]] == kept[1:]
        assert "MPI_Recv" in kept[0] and "MPI_Recv" in all_frames[count]
    assert answers["innermost"].startswith("#1 ")


def test_all_settings_are_shown(session: Session) -> None:
    answers = session.run("""
for command in ("show rank", "show rank fold-runtime", "show rank object-path", "set rank", "set rank nosuch 1",
                "show rank nosuch", "show print nosuch"):
    tell(command, ask(command))
""")
    assert answers["show rank"].splitlines() == [
        "fold-runtime:  " + answers["show rank fold-runtime"].rstrip(),
        "object-path:  " + answers["show rank object-path"].rstrip(),
    ]
    assert "set rank fold-runtime -- Set whether" in answers["set rank"]
    assert answers["show rank nosuch"] == answers["show print nosuch"].replace("print", "rank")
    assert answers["set rank nosuch 1"] == answers["show rank nosuch"].replace("show", "set")


def test_a_vanished_file_found_elsewhere(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, tmp_path: Path
) -> None:
    """The same file is taken from a folder of the user's, another one of its name is refused."""
    copy = tmp_path / "copy" / "places"
    copy.parent.mkdir()
    copy.write_bytes(program.read_bytes())
    copy.chmod(0o755)
    places = hold(start_job(rankrun, "-n", RANKS, copy))
    core = make_core(places.pid, tmp_path)
    copy.unlink()
    other = tmp_path / "other"
    other.mkdir()
    compile_program("rankcc", other, "places.c", "-DOTHER", "-O1")
    answers = session.run(
        f"""
gdb.execute("set rank object-path {other}")
tell("other", ask("rank 2"))
gdb.execute("set rank object-path {other}:{program.parent}")
{VALUES}
""",
        rankrun.resolve(),
        core,
    )
    assert "build-id" in answers["other"] and "Traceback" not in answers.output, answers["other"]
    check(answers["answers"], places)


def test_help(session: Session) -> None:
    answers = session.run(
        """
for words in ("help rank", "help set rank", "help show rank", "help rank tree", "help set rank object-path"):
    tell(words, ask(words))
tell("completed", ask("complete set rank f") + ask("complete set rank o"))
"""
    )
    for command in ("apply", "bt", "diff", "info", "list", "none", "print", "tree", "where"):
        assert f"rank {command} --" in answers["help rank"] or f"rank {command}, " in answers["help rank"], command
    assert "fold-runtime" in answers["completed"] and "object-path" in answers["completed"]
    assert "build-id" in answers["help set rank object-path"]


def test_a_charset_that_python_does_not_know(gdb: Path, places: Places) -> None:
    """GDB's Python would take and give no text: the extension works all the same, and says nothing of it."""
    commands = ("set host-charset EBCDIC-US", "rank 1", "print 1", "rank print $_rank", "quit")
    typed = "\n".join((f"source {EXTENSION}", *commands, ""))
    words = [str(gdb), "-nx", "-q", "-iex", "set debuginfod enabled off", "-iex", "set confirm off"]
    words += ["-p", str(places.pid)]
    done = subprocess.run(words, input=typed, capture_output=True, text=True, timeout=60, check=True)
    assert "$1 = 1" in done.stdout and "Python" not in done.stdout + done.stderr, done
    assert "Switching to rank 1" in done.stdout and "2: 2" in done.stdout, done
