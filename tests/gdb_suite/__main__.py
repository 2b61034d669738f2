"""`python -m tests.gdb_suite SOURCES [FOLDER|FILE...]`: run GDB's test suite in processes and in ranks, and compare.

SOURCES is a checkout of GDB of about the version of the debugger, which RANKLENS_GDB names (default: gdb). Folders are
those of its test suite; each file of them is a run of DejaGnu's `runtest` by itself, so that one that hangs is one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.gdb_suite.compare import NOT_REACHED, Comparison, compared, known_differences, results

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDERS = ("gdb.base", "gdb.cp", "gdb.fortran", "gdb.python", "gdb.opt", "gdb.mi", "gdb.multi")
WAYS = ("native", "rank")
LAUNCHER = "launcher"
LIBRARIES = ROOT / "build" / "runtime" / "lib"
RUNTIME = "librankmpi.so"
LONGEST = 400  # seconds for one file
SITE = """set tool gdb
set srcdir "{suite}"
set objdir "{folder}"
set boards_dir "{boards}"
set host_triplet x86_64-pc-linux-gnu
set target_triplet x86_64-pc-linux-gnu
set build_triplet x86_64-pc-linux-gnu
"""


def main() -> int:
    options = parsed()
    suite = options.sources / "gdb" / "testsuite"
    if not (suite / "lib" / "gdb.exp").exists():
        print(f"{options.sources} has no gdb/testsuite: name a checkout of GDB", file=sys.stderr)
        return 2
    if shutil.which("runtest") is None:
        print("DejaGnu's runtest is missing: apt install dejagnu expect", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    build_launcher(options.folder / LAUNCHER)
    shutil.copy2(LIBRARIES / RUNTIME, options.folder)  # without the script beside it, which loads the extension
    files = list(files_of(suite, options.tests))
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [(suite, options.folder.resolve(), way, file) for file in files for way in WAYS]
        for (_, _, way, file), status in zip(jobs, pool.map(lambda job: run_one(*job), jobs)):
            if status:
                print(f"{file} {way}: {status}", flush=True)
    return report(options.folder, files)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gdb_suite", description=__doc__)
    parser.add_argument("sources", type=Path)
    parser.add_argument("tests", nargs="*", default=FOLDERS)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "gdb-suite", help="where results are kept")
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_intermixed_args()


def build_launcher(launcher: Path) -> None:
    """What runs a program of the suite in ranks, for the board to copy."""
    options = ["-O1", "-s", "-Wl,--build-id=none", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-lrankmpi"]
    subprocess.run(["gcc", str(HERE / "launcher.c"), "-o", str(launcher), *options], check=True)


def files_of(suite: Path, tests: Sequence[str]) -> Iterator[str]:
    """Test files by their names in the suite, such as gdb.base/list.exp."""
    for test in tests:
        place = suite / test
        yield from [test] if place.is_file() else sorted(f"{test}/{file.name}" for file in place.glob("*.exp"))


def run_one(suite: Path, folder: Path, way: str, file: str) -> str:
    """Run one file in one way, unless that was done before; "" or why there is no result."""
    place = folder / way / file
    if (place / "gdb.sum").exists():
        return ""
    place.mkdir(parents=True, exist_ok=True)
    (place / "site.exp").write_text(SITE.format(suite=suite, folder=place, boards=HERE / "boards"))
    command = ["runtest", "--status", f"--target_board={way}", f"GDB={os.environ.get('RANKLENS_GDB', 'gdb')}"]
    command += [f"GDBFLAGS={flags(way)}", file]
    environment = {
        **os.environ,
        "RANKLENS_PYTHON": sys.executable,
        "RANKLENS_LAUNCHER": str(folder / LAUNCHER),
        "RANKLENS_SUITE_LIBRARIES": str(folder),
        "LD_BIND_NOW": "1",  # as rankrun, which binds all calls before it copies code
    }
    with (place / "output").open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            (place / "gdb.sum").unlink(missing_ok=True)  # half a run says nothing of what it did not come to
            return f"it took longer than {LONGEST} s"
    return "" if (place / "gdb.sum").exists() else "there is no gdb.sum"


def flags(way: str) -> str:
    """GDB's options, as a list of Tcl's."""
    commands = [("-iex", "set debuginfod enabled off")]
    if way == "rank":
        commands += [("-iex", f"add-auto-load-safe-path {ROOT}"), ("-ex", f"source {ROOT / 'gdbext' / 'rank.py'}")]
    return " ".join(f"{option} {{{command}}}" for option, command in commands)


def report(folder: Path, files: Sequence[str]) -> int:
    """Print what differs and how much; 0 if nothing differs without a reason."""
    knowns = known_differences((HERE / "differences.txt").read_text().splitlines())
    total: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for file in files:
        sums = [(folder / way / file / "gdb.sum") for way in WAYS]
        if not all(path.exists() for path in sums):
            total["files without a result"] += 1
            continue
        total["files"] += 1
        native, in_rank = [results(path.read_text(errors="replace")) for path in sums]
        comparison = compared(native, in_rank, knowns)
        total.update(counts(comparison))
        reasons.update(difference.reason for difference in comparison.differences if difference.reason)
        for one in comparison.differences:
            if not one.reason:
                print(f"{one.in_rank}: {one.assertion.file}: {one.assertion.name}")
    for reason, number in reasons.most_common():
        print(f"{number:,}: {reason}")
    print(", ".join(f"{number:,} {what}" for what, number in total.items()))
    return 1 if total["without a reason"] else 0


def counts(comparison: Comparison) -> dict[str, int]:
    reached = [difference for difference in comparison.differences if difference.in_rank != NOT_REACHED]
    return {
        "pass in a process": comparison.passed,
        "compared": comparison.compared,
        "equal": comparison.equal,
        "different": len(reached),
        NOT_REACHED: len(comparison.differences) - len(reached),
        "without a reason": sum(not difference.reason for difference in comparison.differences),
    }


if __name__ == "__main__":
    raise SystemExit(main())
