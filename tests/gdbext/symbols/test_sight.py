"""Names keep their meaning where it is easy to lose: other files of symbols, libraries, later arrivals."""

from __future__ import annotations

import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pieglobalsfind.cache.path import cache_folder
from pieglobalsfind.elf.file import ElfFile
from tests.support import methods
from tests.support.debuggers import gdb_version
from tests.support.gdb.places import RANKS, SOURCES, Places, compile_program, hold
from tests.support.gdb.session import EXTENSION, Session
from tests.support.running import StartJob
from tests.support.sharing import Shared

DEBUGGERS = 3  # at a time

MAPS_CODE = """
#include <fcntl.h>
#include <sys/mman.h>
__attribute__((constructor)) static void map_code(void) {{
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open("{}", O_RDONLY), 0);
}}
"""
VALUES = """
answers = []
for rank in (2, 0, 3, 1, 2):
    gdb.execute(f"rank {rank}")
    for where in ("", "stay"):
        if where:
            gdb.execute("frame function " + where)
        names = ("(long)&shared_name", "shared_name", "(long)&'places.c'::file_static", "*pointer", "pair.second")
        answers.append([rank, *map(value, names), value("move_on::calls")])
tell("answers", answers)
"""


def check(answers: list[list[int]], places: Places) -> None:
    for rank, *found in answers:
        own = {name: places.owned[rank, name] for name in ("shared_name", "file_static", "pair", "calls")}
        shared = own["shared_name"]
        assert found == [
            shared.address,
            shared.value,
            own["file_static"].address,
            shared.value,
            own["pair"].value,
            own["calls"].value,
        ], f"rank {rank}"


AT_FIXED_ADDRESSES = "-Wl,-Ttext-segment=0x1000000"  # whose headers then hold words that look like pointers
KINDS = [("-gz",), ("-gsplit-dwarf",), ("-gdwarf-4",), ("-O2",), ("-fcommon",), (AT_FIXED_ADDRESSES,)]


@pytest.mark.parametrize("flags", KINDS, ids=str)
def test_kinds_of_debug_information(
    session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    program = compile_program("rankcc", tmp_path, "places.c", *flags)
    places = hold(start_job(rankrun, "-n", RANKS, program))
    check(session.attach(VALUES, places.pid)["answers"], places)


@pytest.mark.parametrize("method", ["none", "pip", "tls"])
def test_a_thread_local_variable_without_debug_information(
    session: Session, start_job: StartJob, shared: Shared, tmp_path: Path, method: str
) -> None:
    """GDB goes by its symbol, which is another module's variable to the thread library."""
    held = methods.hold(start_job, method, methods.compile_kinds(method, tmp_path, shared, "-g0"))
    script = """
for rank in range(3):
    gdb.execute(f"rank {rank}")
    tell(str(rank), [value("(long)&per_thread"), value("*(int *)&per_thread")])
"""
    answers = session.attach(script, held.job.pid)
    for rank, truth in held.truth.items():
        assert answers[str(rank)] == [truth["per_thread"].address, truth["per_thread"].value], answers.output


def test_a_separate_debug_file(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, tmp_path: Path
) -> None:
    stripped, debug = tmp_path / "places", tmp_path / "places.debug"
    for command in (
        ["objcopy", "--only-keep-debug", program, debug],
        ["strip", "-g", "-o", stripped, program],
        ["objcopy", f"--add-gnu-debuglink={debug}", stripped],
    ):
        subprocess.run([str(word) for word in command], check=True, timeout=60, cwd=tmp_path)
    places = hold(start_job(rankrun, "-n", RANKS, stripped))
    check(session.attach(VALUES, places.pid)["answers"], places)


def test_a_folder_of_debug_files_by_build_id(
    session: Session, start_job: StartJob, rankrun: Path, program: Path, tmp_path: Path
) -> None:
    with ElfFile(str(program)) as file:
        identity = file.build_id.hex()
    debug = tmp_path / "kept" / ".build-id" / identity[:2] / f"{identity[2:]}.debug"
    debug.parent.mkdir(parents=True)
    stripped = tmp_path / "places"
    for command in (["objcopy", "--only-keep-debug", program, debug], ["strip", "-g", "-o", stripped, program]):
        subprocess.run([str(word) for word in command], check=True, timeout=60)
    places = hold(start_job(rankrun, "-n", RANKS, stripped))
    script = f"""
gdb.execute("set debug-file-directory {tmp_path / "kept"}")
gdb.execute("attach {places.pid}")
{VALUES}
"""
    check(session.run(script)["answers"], places)


def test_debuggers_race_for_the_views(gdb: Path, places: Places, rankrun: Path, core: Path, tmp_path: Path) -> None:
    """Each finds an empty cache at first; all are right, and what is left is one whole view of each object."""
    folders = [tmp_path / f"debugger{number}" for number in range(DEBUGGERS)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(DEBUGGERS) as pool:
        running = [pool.submit(Session(gdb, folder).run, VALUES, rankrun.resolve(), core) for folder in folders]
        for future in running:
            check(future.result()["answers"], places)
    views = cache_folder("views")
    assert views is not None
    kept = sorted(path.relative_to(views) for path in Path(views).rglob("*") if path.is_file())
    assert kept and [one.name for one in kept] == sorted({one.name for one in kept}), kept


def test_arriving_after_the_extension(session: Session, places: Places) -> None:
    script = f"""
gdb.execute("attach {places.pid}")
tell("rank", value("$_rank"))
tell("first", functions()[0])
{VALUES}
"""
    answers = session.run(script)
    assert answers["rank"] == RANKS - 1 and answers["first"] == "spin"
    check(answers["answers"], places)


def test_a_core_opened_after_the_extension(session: Session, places: Places, rankrun: Path, core: Path) -> None:
    script = f'gdb.execute("file {rankrun.resolve()}")\ngdb.execute("core-file {core}")\n{VALUES}'
    check(session.run(script)["answers"], places)


def test_from_one_process_to_another(session: Session, start_job: StartJob, rankrun: Path, program: Path) -> None:
    first, second = (hold(start_job(rankrun, "-n", RANKS, program)) for _ in range(2))
    script = f"""
gdb.execute("attach {first.pid}")
gdb.execute("rank 1")
gdb.execute("detach")
tell("between", ask("rank list"))
gdb.execute("attach {second.pid}")
{VALUES}
"""
    answers = session.run(script)
    assert answers["between"].startswith("error: there is no process")
    check(answers["answers"], second)


def test_interrupting(session: Session, places: Places) -> None:
    script = f"""
import os, threading
def interrupt_once_it_runs():
    while "State:\tt" in open("/proc/{places.pid}/status").read():
        pass
    os.kill({places.pid}, {int(signal.SIGINT)})
gdb.execute("rank 0")
for turn in range(3):
    threading.Thread(target=interrupt_once_it_runs).start()
    gdb.execute("continue")
tell("kernel", ask("info symbol __vdso_gettimeofday"))
tell("rank", value("$_rank"))
tell("stack", functions()[:2])
tell("value", value("shared_name"))
"""
    answers = session.attach(script, places.pid)
    assert (answers["rank"], answers["stack"], answers["value"]) == (RANKS - 1, ["spin", "stay"], 13)
    assert "gettimeofday in section .text" in answers["kernel"], "the kernel's own library must keep its symbols"


def test_a_library_loaded_later(session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path) -> None:
    program = compile_program("rankcc", tmp_path, "loads.c")
    (tmp_path / "late.c").write_text("int late(void) { return 1; }\n")
    late = tmp_path / "late.so"
    subprocess.run(["cc", "-g", "-shared", "-fPIC", str(tmp_path / "late.c"), "-o", str(late)], check=True, timeout=60)
    lines = (SOURCES / "loads.c").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "before++" in text)
    script = f"""
gdb.execute("break loads.c:{line}")
gdb.execute("run")
tell("loaded", [one.filename for one in gdb.objfiles() if one.filename.endswith("late.so")])
answers = []
for rank in (0, 2, 1):
    gdb.execute(f"rank {{rank}}")
    answers.append([rank, value("before"), value("(long)&before") == value(f'(long)$_rankaddr("before", {{rank}})')])
    gdb.execute("frame function main")
    answers.append([rank, value("before"), value("optind")])
tell("answers", answers)
"""
    answers = session.run(script, "--args", rankrun, "-n", 3, program, late)
    assert len(answers["loaded"]) == 1, answers.output
    assert answers["answers"] == [
        [rank, *rest] for rank in (0, 2, 1) for rest in ([5 + 10 * rank, True], [5 + 10 * rank, 4000 + rank])
    ], answers.output


def test_originals_stay_unread_as_a_library_is_loaded(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """GDB reads the library alone, and its setting is the user's whenever a user can see it."""
    program = compile_program("rankcc", tmp_path, "loads.c")
    (tmp_path / "late.c").write_text("int late = 7;\nint later(void) { return late; }\n")
    late = tmp_path / "late.so"
    subprocess.run(["cc", "-g", "-shared", "-fPIC", str(tmp_path / "late.c"), "-o", str(late)], check=True, timeout=60)
    (tmp_path / "called.c").write_text("int called = 9;\n")
    command = ["cc", "-g", "-shared", "-fPIC", str(tmp_path / "called.c"), "-o", str(tmp_path / "called.so")]
    subprocess.run(command, check=True, timeout=60)
    lines = (SOURCES / "loads.c").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "before++" in text)
    script = f"""
SETTING = "auto-solib-add"
read = []
gdb.events.new_objfile.connect(lambda event: read.append(event.new_objfile.filename))
gdb.execute("break load")
gdb.execute("break later")
gdb.execute("run")
tell("before", gdb.parameter(SETTING))
read.clear()
called = ask('print (long)((void *(*)(const char *, int))dlopen)("{tmp_path}/called.so", 2) != 0')
tell("called", [called, [name for name in read if name.endswith(("/loads", "/called.so"))], value("called")])
gdb.execute("break loads.c:{line}")
read.clear()
gdb.execute("continue")
tell("stop", [value("$_rank"), gdb.parameter(SETTING), gdb.breakpoints()[1].pending, value("late")])
tell("listed", ask("info breakpoints 3"))
tell("read", [name for name in read if name.endswith(("/loads", "/late.so"))])
gdb.execute("kill")
tell("after", gdb.parameter(SETTING))
gdb.execute("set auto-solib-add off")
gdb.execute("run")
gdb.execute("continue")
tell("off", [gdb.parameter(SETTING), ask("print late")])
gdb.execute("kill")
tell("still", gdb.parameter(SETTING))
"""
    answers = session.run(script, "--args", rankrun, "-n", 3, program, late)
    assert "\nBreakpoint 3, load" in answers.output and "MULTIPLE" not in answers["listed"], answers.output
    assert answers["stop"] == [2, True, False, 7], answers.output
    assert answers["read"] == [str(late)], answers.output
    assert answers["before"] and answers["after"]
    printed, *rest = answers["called"]
    assert printed.endswith("$1 = 1\n"), answers.output  # GDB 15 on Ubuntu warns before
    assert rest == [[f"{tmp_path}/called.so"], 9], answers.output
    assert answers["off"][0] is False and answers["still"] is False and "No symbol" in answers["off"][1]


def test_the_list_of_libraries_stays_as_one_is_loaded(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """Code that GDB reads no symbols of is mapped: GDB's breakpoint at the dynamic linker stays, at which it stops.

    Without it GDB crashes once a handler of the same stop looks at it.
    """
    program = compile_program("rankcc", tmp_path, "loads.c")
    (tmp_path / "code").write_bytes(bytes(4096))
    for name, source in (("maps", MAPS_CODE.format(tmp_path / "code")), ("late", "int late = 7;\n")):
        (tmp_path / f"{name}.c").write_text(source)
        command = ["cc", "-g", "-shared", "-fPIC", str(tmp_path / f"{name}.c"), "-o", str(tmp_path / f"{name}.so")]
        subprocess.run(command, check=True, timeout=60)
    script = f"""
HEARS = r"(?m)^(-\\d+) +shlib events"
gdb.execute("break load")
gdb.execute("run")
before = re.findall(HEARS, ask("maint info breakpoints"))
mapped = ask('print (long)((void *(*)(const char *, int))dlopen)("{tmp_path}/maps.so", 2) != 0')
gdb.execute("finish")
tell("mapped", [mapped, "{tmp_path}/code" in ask("info proc mappings")])
tell("hears", [before, re.findall(HEARS, ask("maint info breakpoints")), value("late")])
"""
    answers = session.run("import re\n" + script, "--args", rankrun, "-n", 3, program, tmp_path / "late.so")
    mapped, is_code_mapped = answers["mapped"]
    assert mapped.endswith("$1 = 1\n") and is_code_mapped, answers.output
    before, after, late = answers["hears"]
    assert late == 7, answers.output
    # Where GDB listens at several places, the linker's probes, none of them is where it stops now.
    assert before and (len(before) > 1 or after == before), answers.output


def test_libraries_that_came_with_the_program(
    session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path
) -> None:
    program = compile_program("rankfort", tmp_path, "greets.f90")
    job = start_job(rankrun, "-n", RANKS, program)
    job.wait_for("ready")
    script = f"""
tell("language", [ask("rank 1"), ask("show language")])
gdb.execute("set language c")
tell("kept", [[rank, value("greets::kept") if not gdb.execute(f"rank {{rank}}", to_string=True) is None else 0,
               value(f'(long)$_rankaddr("_gfortran_st_write", {{rank}})')] for rank in range({RANKS})])
tell("owners", [ask(f'rank where $_rankaddr("_gfortran_st_write", {{rank}})') for rank in range({RANKS})])
gdb.execute("rank 2")
tell("symbol", ask('info symbol $_rankaddr("_gfortran_st_write", 2)'))
tell("main", ask("bt -2"))
tell("again", [ask(command) for command in ("rank none", "rank 2", "rank 1", "rank none", "rank 2")])
"""
    answers = session.attach(script, job.pid)
    assert all("Switching to rank" in answers["again"][index] for index in (1, 2, 4)), answers["again"]
    assert [row[1] for row in answers["kept"]] == [100 + rank for rank in range(RANKS)]
    assert len({row[2] for row in answers["kept"]}) == RANKS
    for rank, text in enumerate(answers["owners"]):
        assert f": rank {rank}: code _gfortran_st_write (libgfortran.so" in text
    assert answers["symbol"].startswith("_gfortran_st_write in section .text of ")
    assert "mpi_recv" in answers["language"][0] and "fortran" in answers["language"][1], answers["language"]
    assert "greets () at" in answers["main"]
    # the compiler's main, before which newer GDBs end, is shown by older ones where the innermost frame is of C
    assert (" in main (argc=" in answers["main"]) == (gdb_version() < (14, 0))


def test_libraries_that_came_with_a_program_that_is_run_again(session: Session, rankrun: Path, tmp_path: Path) -> None:
    program = compile_program("rankfort", tmp_path, "greets.f90")
    script = """
gdb.execute("break MAIN__")
for run in ("first", "second"):
    gdb.execute("run")
    tell(run, [value("$_rank"), ask("print kept"), ask("bt 1"), value("$_rank_hits(1, 0)")])
    if run == "first":
        gdb.execute("kill")
gdb.execute("rbreak ^kept")  # GDB looks for functions by other names than Fortran's variables have
tell("variables", [one.enabled for one in gdb.breakpoints() if one.number > 1])
"""
    answers = session.run(script, "--args", rankrun, "-n", 2, program)
    for run in ("first", "second"):
        rank, kept, stack, hits = answers[run]
        assert rank == 0 and kept.endswith(" = 100\n") and stack.startswith("#0  greets ()"), answers.output
        assert hits == 1
    assert "no rank is selected" not in answers.output
    assert answers["variables"] and not any(answers["variables"]), answers.output


def test_the_extension_is_quick_to_load(session: Session) -> None:
    """Only that nothing heavy is imported; how long it takes is for the benchmarks."""
    script = f"""
before = set(sys.modules)
gdb.execute("source {EXTENSION}")
tell("new", sorted(name for name in set(sys.modules) - before if "." not in name))
"""
    answers = session.run(script, source=False)
    heavy = {
        "pathlib",
        "asyncio",
        "http",
        "urllib",
        "email",
        "unittest",
        "multiprocessing",
        "sqlite3",
        "elftools",
        "rich",
        "numpy",
    }
    assert not heavy & set(answers["new"]) - {"urllib"}


@pytest.mark.parametrize("prompts", [False, True])
@pytest.mark.parametrize("command", ["symbol-file", "file"])
def test_symbols_that_the_user_reads_anew(
    gdb: Path, session: Session, places: Places, rankrun: Path, command: str, prompts: bool
) -> None:
    """GDB drops all symbols at `symbol-file`, and reads the originals' again at both."""
    program = rankrun.resolve()
    commands = ["rank 1", "symbol-file", f"{command} {program}", "rank 2", "print shared_name", f"{command} {program}"]
    commands += ["rank 1", "print shared_name", "rank print shared_name"]
    if prompts:
        typed = "".join(f"{one}\n" for one in ["set confirm off", f"source {EXTENSION}", *commands, "quit"])
        words = [str(gdb), "-nx", "-q", "-iex", "set debuginfod enabled off", "-p", str(places.pid)]
        done = subprocess.run(words, input=typed, capture_output=True, text=True, timeout=120, check=True)
        said = done.stdout
    else:
        answers = session.attach(f"""tell("said", "".join(ask(one) for one in {commands!r}))""", places.pid)
        said = answers["said"]
    values = [places.owned[rank, "shared_name"].value for rank in range(RANKS)]
    found = [int(one) for one in re.findall(r"\$\d+ = (\d+)", said)]
    assert found == [values[2], values[1]], said
    assert re.findall(r"^(?:\(gdb\) )?\d: (\d+)$", said, re.M) == [str(value) for value in values], said


def test_libraries_that_the_user_has_read_anew(gdb: Path, places: Places) -> None:
    """GDB reads the originals' symbols, too, and the same rank is selected again, without a word."""
    commands = ["set confirm off", f"source {EXTENSION}", "echo sourced\\n", "set solib-search-path /nowhere"]
    typed = "".join(f"{command}\n" for command in [*commands, "print shared_name", "quit"])
    words = [str(gdb), "-nx", "-q", "-iex", "set debuginfod enabled off", "-p", str(places.pid)]
    done = subprocess.run(words, input=typed, capture_output=True, text=True, timeout=120, check=True)
    said = done.stdout.partition("sourced")[2]
    assert "runs here" not in said and f"$1 = {places.owned[RANKS - 1, 'shared_name'].value}\n" in said, done.stdout
