"""The command's words, streams and statuses: what a user meets when things are not as they should be."""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.dwarf.libdw import private_copy
from tests.support.places import SOURCES, Command, StartPlaces, gcore
from tests.support.running import ROOT, StartJob, built


def sentence(done: subprocess.CompletedProcess[bytes]) -> str:
    """The one line that a refused call prints."""
    assert done.stdout == b""
    text = done.stderr.decode()
    assert text.count("\n") == 1, text
    assert text.startswith("pieglobalsfind: "), text
    return text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pid", "1"], "no address is given"),
        (["--pid", "1", "counter"], "'counter' is not an address"),
        (["--pid", "1", "0x"], "'0x' is not an address"),
        (["--pid", "1", "--", "-5"], "'-5' is not an address"),
        (["--pid", "1", "0x1ffffffffffffffff"], "more than 64 bits"),
        (["--pid", "1", "--filter", "0x10"], "--filter takes its addresses from standard input"),
        (["--pid", "1", "--filter", "--json"], "--filter takes its addresses from standard input"),
        (["--pid", "1", "--exe", "/bin/true", "0x10"], "a process knows its own files"),
        (["--pid", "99999999", "0x10"], "there is no process 99999999"),
        (["--core", "/nowhere/core", "0x10"], "no such file"),
        (["--core", "/bin/true", "0x10"], "is not a core file"),
        (["--core", "/dev/null", "0x10"], "not a regular file"),
        (["--core", "", "0x10"], "an empty text is given for core"),
        (["--checkpoint", "", "0x10"], "an empty text is given for checkpoint"),
        (["--pid", "1", ""], "an empty text is given for addresses"),
    ],
)
def test_a_bad_call(find: Command, words: list[str], said: str) -> None:
    done = find.run(*words)
    assert done.returncode == 2
    assert said in sentence(done)


@pytest.mark.parametrize(
    "words", [[], ["0x10"], ["--pid", "x", "0x10"], ["--pid", "1", "--core", "c", "0x10"], ["--what"]]
)
def test_words_that_make_no_call(find: Command, words: list[str]) -> None:
    done = find.run(*words)
    assert done.returncode == 2
    assert b"usage: pieglobalsfind" in done.stderr


def test_help(find: Command) -> None:
    done = find.run("--help")
    assert done.returncode == 0
    for word in (b"examples:", b"exit status:", b"--filter", b"--core", b"unmapped"):
        assert word in done.stdout


def test_its_page_has_every_option(find: Command) -> None:
    page = (ROOT / "docs" / "pieglobalsfind.md").read_text()
    options = set(re.findall(r"^  (?:-h, )?(--[a-z]+)", find.run("--help").stdout.decode(), re.MULTILINE)) - {
        "--help",
        "--version",
    }
    assert options == set(re.findall(r"[|,] `(--[a-z]+)", page)) and len(options) > 5


def test_no_virtual_ranks(find: Command) -> None:
    """Our own parent is a process as good as any."""
    done = find.run("--pid", os.getpid(), "0x10")
    assert done.returncode == 2
    assert f"process {os.getpid()} has no virtual ranks" in sentence(done)


def test_a_process_that_only_reads_a_program_with_ranks(find: Command) -> None:
    """As debuggers do, and this command: no variable of the mapped file is one of the process."""
    library = built("rankrun").resolve().parent.parent / "lib" / "librankmpi.so"
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        done = find.run("--pid", os.getpid(), "0x10")
    assert done.returncode == 2
    assert f"process {os.getpid()} has no virtual ranks" in sentence(done)


def test_a_process_that_reads_debug_information(find: Command) -> None:
    """Of what it runs itself: the copy of the file that it reads from is not a rank's."""
    descriptor = private_copy.opened(str(Path("/proc/self/exe").readlink()))
    try:
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ):
            done = find.run("--pid", os.getpid(), "0x10")
    finally:
        os.close(descriptor)
    assert done.returncode == 2
    assert f"process {os.getpid()} has no virtual ranks" in sentence(done)


def test_statuses(start_places: StartPlaces, find: Command) -> None:
    """0 if anything was found, 1 if nothing was; an address that is nobody's says why."""
    places = start_places("places.c", ranks=2)
    known = hex(places.place("counter", 1).address)
    done = find.run("--pid", places.job.pid, "0x10", known, "deadbeefdeadbeef")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert lines[0].startswith("0x10  no rank  unmapped  (it is not mapped")
    assert f"{known}  rank 1  data  places_program+0x" in lines[1]
    assert "  counter+0x0  places.c:10  original 0x" in lines[1]
    assert "not canonical" in lines[2]
    done = find.run("--pid", places.job.pid, "10", "0X20")
    assert (done.returncode, done.stdout.count(b"unmapped")) == (1, 2)


def test_json_is_one_object_per_line(start_places: StartPlaces, find: Command) -> None:
    places = start_places("places.c", ranks=2)
    wanted = (("counter", 3), ("-", 0))
    addresses = [
        hex(place.address) for place in places.places if place.rank == 1 and (place.name, place.offset) in wanted
    ]
    nobody, counter, heap = find.records("--pid", places.job.pid, "0x10", *addresses)[:3]
    assert set(nobody) == set(counter) == set(heap)
    assert (nobody["kind"], nobody["rank"], nobody["object"]) == ("unmapped", None, None)
    assert (counter["symbol"], counter["symbol_offset"], counter["symbol_size"]) == ("counter", 3, 4)
    assert counter["file"].endswith("sources/places.c")
    assert isinstance(counter["offset"], int)
    assert counter["original"].startswith("0x")


def test_filter_explains_and_changes_nothing_else(start_places: StartPlaces, find: Command) -> None:
    places = start_places("places.c", ranks=2)
    place = places.place("counter", 1)
    bare, padded = f"{place.address:x}", f"{place.address:016x}"
    text = (
        f"crash at {place.address:#x}, ip {padded} sp 0x10\n"
        f"x{bare}x 0x{bare}g counter+0x4 {place.address}\n"
        "\n  \x1b[31m\ttabs stay\r\n"
    ).encode() + b"\xff\xfe\x00 no text\nno end"
    done = find.run("--pid", places.job.pid, "--filter", text=text)
    note = f" [rank 1  data  places_program+{place_offset(find, places.job.pid, place.address)}"
    assert done.returncode == 0
    lines = done.stdout.split(b"\n")
    assert lines[0].decode().startswith(f"crash at {place.address:#x}{note}")
    assert lines[0].decode().count(note) == 2
    assert lines[0].endswith(b" sp 0x10")
    assert lines[1:] == text.split(b"\n")[1:]


def place_offset(find: Command, pid: int, address: int) -> str:
    return f"{find.records('--pid', pid, hex(address))[0]['offset']:#x}"


def test_filter_passes_each_line_on_at_once(start_places: StartPlaces, find: Command) -> None:
    """A log that grows is explained while it grows."""
    places = start_places("places.c", ranks=2)
    command = [str(find.path), "--pid", str(places.job.pid), "--filter"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as filtering:
        assert filtering.stdin is not None and filtering.stdout is not None
        for place in places.places[:3]:
            filtering.stdin.write(f"at {place.address:#x}\n")
            filtering.stdin.flush()
            assert f"[rank {place.rank}  {place.kind}" in filtering.stdout.readline()
        filtering.stdin.close()
        assert filtering.wait(60) == 0


def test_filter_statuses(start_places: StartPlaces, find: Command) -> None:
    places = start_places("places.c", ranks=2)
    assert find.run("--pid", places.job.pid, "--filter", text=b"no address\n").returncode == 0
    done = find.run("--pid", places.job.pid, "--filter", text=b"at 0x10\n")
    assert (done.returncode, done.stdout) == (1, b"at 0x10\n")
    long = b"z" * 3_000_000
    assert find.run("--pid", places.job.pid, "--filter", text=long).stdout == long


def test_a_reader_who_has_seen_enough(start_places: StartPlaces, find: Command) -> None:
    places = start_places("places.c", ranks=2)
    command = [str(find.path), "--pid", str(places.job.pid), "--filter"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as filtering:
        assert filtering.stdin is not None and filtering.stdout is not None and filtering.stderr is not None
        filtering.stdin.write(b"a line\n")
        filtering.stdin.flush()
        assert filtering.stdout.readline() == b"a line\n"
        filtering.stdout.close()
        filtering.stdin.write(b"another\n")
        filtering.stdin.close()
        assert filtering.wait(60) == 0
        assert filtering.stderr.read() == b""


def test_the_job_ends_meanwhile(start_places: StartPlaces, find: Command) -> None:
    """What was known of it still explains the rest of its log."""
    places = start_places("places.c", ranks=2)
    command = [str(find.path), "--pid", str(places.job.pid), "--filter"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as filtering:
        assert filtering.stdin is not None and filtering.stdout is not None
        for address in places.addresses[:2]:
            filtering.stdin.write(f"at {address}\n")
            filtering.stdin.flush()
            assert "rank" in filtering.stdout.readline()
            places.job.close()
        filtering.stdin.write("at 0x12345678\n")
        filtering.stdin.close()
        assert filtering.stdout.read() == "at 0x12345678\n"
        assert filtering.wait(60) == 0


def test_a_stopped_job(start_places: StartPlaces, find: Command) -> None:
    """Nothing is asked of the job: it may as well be stopped."""
    places = start_places("places.c", ranks=2)
    os.kill(places.job.pid, signal.SIGSTOP)
    assert find.records("--pid", places.job.pid, places.addresses[0])[0]["symbol"] == "counter"


def test_stripped(start_places: StartPlaces, find: Command, tmp_path: Path) -> None:
    """Exported names remain, lines do not, and ranks and offsets are as before."""
    places = start_places("places.c", ranks=2, debug="-s")
    counter, kept = find.records(
        "--pid", places.job.pid, *(hex(places.place(name, 1).address) for name in ("counter", "kept"))
    )
    assert (counter["rank"], counter["kind"], counter["symbol"], counter["file"]) == (1, "data", "counter", None)
    assert (kept["rank"], kept["kind"], kept["symbol"]) == (1, "data", None)
    assert "no symbol covers it" in kept["reason"]


def test_separate_debug_file(start_places: StartPlaces, find: Command, tmp_path: Path) -> None:
    """By .gnu_debuglink beside the program: static names and lines are there again."""
    places = start_places("places.c", ranks=2)
    places.job.close()
    debug = tmp_path / "places_program.debug"
    for command in (
        ["objcopy", "--only-keep-debug", str(places.program), str(debug)],
        ["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", str(places.program)],
    ):
        subprocess.run(command, check=True, timeout=60)
    again = start_again(places.program, tmp_path)
    try:
        address = next(line.split()[-1] for line in again[1] if " 1 data kept " in line)
        (record,) = find.records("--pid", again[0].pid, address)
        assert (record["rank"], record["symbol"], record["symbol_offset"]) == (1, "kept", 8)
        assert record["line"] == 12
    finally:
        again[0].kill()
        again[0].wait()


def start_again(program: Path, folder: Path) -> tuple[subprocess.Popen[str], list[str]]:
    """Run a program that is built already; its lines up to "ready"."""
    from tests.support.running import built

    command = [str(built("rankrun")), "-n", "2", str(program)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != "ready\n":
        lines.append(process.stdout.readline())
        assert lines[-1], "the job ended early"
    return process, lines


def test_a_program_that_is_gone(start_places: StartPlaces, find: Command, tmp_path: Path) -> None:
    """Of a running job the kernel still has it; of a core file nobody has: ranks and offsets remain."""
    places = start_places("places.c", ranks=2)
    core = gcore(places.job, tmp_path)
    moved = tmp_path / "moved"
    shutil.copy(places.program, moved)
    places.program.unlink()
    address = hex(places.place("counter", 1).address)
    (record,) = find.records("--core", core, address)
    assert (record["rank"], record["kind"], record["symbol"]) == (1, "data", None)
    assert "is not there any more" in record["reason"]
    (record,) = find.records("--core", core, "--exe", moved, address)
    assert (record["rank"], record["symbol"]) == (1, "counter")


def test_a_program_that_was_built_again(start_places: StartPlaces, find: Command, tmp_path: Path, rankcc: Path) -> None:
    """Another file at its path is never taken for it; both build-ids are named."""
    places = start_places("places.c", ranks=2)
    core = gcore(places.job, tmp_path)
    subprocess.run([rankcc, "-O2", SOURCES / "places.c", "-o", places.program], check=True, timeout=60)
    (record,) = find.records("--core", core, hex(places.place("counter", 1).address))
    assert (record["rank"], record["symbol"]) == (1, None)
    assert "has build-id" in record["reason"] and "the target runs" in record["reason"]
    done = find.run("--core", core, "--exe", places.program, "0x10")
    assert done.returncode == 2
    assert "with build-id" in sentence(done)


def test_a_truncated_core_file(start_places: StartPlaces, find: Command, tmp_path: Path) -> None:
    """One sentence, or an answer from what is left; never a traceback, never for long."""
    places = start_places("places.c", ranks=2)
    whole = gcore(places.job, tmp_path).read_bytes()
    core = tmp_path / "cut"
    for share in (0, 100, 4096, len(whole) // 3, len(whole) * 2 // 3, len(whole) - 4096):
        core.write_bytes(whole[:share])
        done = find.run("--core", core, places.addresses[0])
        assert done.returncode in (0, 1, 2)
        assert done.returncode != 2 or sentence(done)


def test_without_a_registry(start_job: StartJob, find: Command, tmp_path: Path) -> None:
    """Copies alone: which rank is a matter of addresses, and every answer says so."""
    (tmp_path / "library.c").write_text("int counter = 5; int add(int a) { return counter += a; }\n")
    for command in (
        ["gcc", "-g", "-shared", "-fPIC", "-o", "library.so", "library.c"],
        ["gcc", "-o", "copies", str(SOURCES / "copies.c")],
    ):
        subprocess.run(command, check=True, cwd=tmp_path, timeout=60)
    job = start_job(tmp_path / "copies", tmp_path / "library.so", 3)
    job.wait_for("ready")
    addresses = sorted(
        (line.split()[-1] for line in job.lines if line.startswith("copy")), key=lambda one: int(one, 16)
    )
    records = find.records("--pid", job.pid, *addresses)
    assert [record["rank"] for record in records] == [0, 1, 2]
    assert {(record["tier"], record["kind"], record["symbol"], record["line"]) for record in records} == {
        ("scan", "data", "counter", 1)
    }
    done = find.run("--pid", job.pid, addresses[0])
    assert b"rank 0 (by scan)" in done.stdout
    assert b"numbered by ascending address" in done.stderr


def test_names_cannot_steer_a_terminal(start_job: StartJob, find: Command, tmp_path: Path) -> None:
    """Paths come from the target."""
    (tmp_path / "library.c").write_text("int counter = 5;\n")
    evil = tmp_path / "evil\x1b[31m\nname.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", evil, tmp_path / "library.c"], check=True, timeout=60)
    subprocess.run(["gcc", "-o", tmp_path / "copies", SOURCES / "copies.c"], check=True, timeout=60)
    job = start_job(tmp_path / "copies", evil, 1)
    job.wait_for("ready")
    address = next(line.split()[-1] for line in job.lines if line.startswith("copy"))
    done = find.run("--pid", job.pid, address)
    assert done.stdout.count(b"\n") == 1
    assert b"\x1b" not in done.stdout
    assert b"\\033[31m\\012name.so" in done.stdout
    assert json.loads(find.run("--pid", job.pid, "--json", address).stdout)["object"] == str(evil)


def test_a_second_start_uses_the_cache(start_places: StartPlaces, find: Command, tmp_path: Path) -> None:
    """And a damaged cache is not a cache: the answers are the same."""
    places = start_places("places.c", ranks=2)
    first = find.records("--pid", places.job.pid, *places.addresses)
    kept = list((tmp_path / "cache/ranklens/index").iterdir())
    assert kept
    assert find.records("--pid", places.job.pid, *places.addresses) == first
    for path in kept:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert find.records("--pid", places.job.pid, *places.addresses) == first
