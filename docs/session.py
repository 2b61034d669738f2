"""Draws docs/session.svg, what a short session with the demo program really prints, and docs/report.png, its report.

Takes nothing; needs `make setup` and chromium. Run it from the project's folder: `.venv/bin/python docs/session.py`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
WIDTH = 100
LINES = 14  # of one command's output
GDB_COMMANDS = ("rank list", "rank 5", "rank bt", "print my_rank", "rank print my_rank")


def output(*words: object) -> list[str]:
    """The lines that a command prints."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": str(WIDTH)}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.replace(f"{ROOT}/build/runtime/bin/../", "").replace(f"{ROOT}/", "").splitlines()


def gdb_lines(pid: int) -> list[str]:
    """A session in GDB, with the commands as they are typed."""
    words: list[object] = ["gdb", "-nx", "-q", "-batch", "-iex", "set auto-load python-scripts off"]
    words += ["-p", pid, "-ex", "set width 0", "-ex", f"source {ROOT}/gdbext/rank.py"]
    for command in GDB_COMMANDS:
        words += ["-ex", f"echo (gdb) {command}\\n", "-ex", command]
    lines = output(*words)
    first = next(number for number, line in enumerate(lines) if line.startswith("(gdb)"))
    return [line for line in lines[first:] if not line.startswith("[Inferior")]


def shortened(lines: list[str]) -> list[str]:
    """The first lines; what is left out is marked."""
    return lines if len(lines) <= LINES else [*lines[:LINES], "..."]


def draw(console: Console, pid: int) -> None:
    """Print the session on a console that records it."""
    for command in (("report", pid), ("stacks", pid)):
        console.print(Text(f"$ inspector {command[0]} {pid}", style="bold cyan"))
        for line in shortened(output(BIN / "inspector", *command)):
            console.print(Text(line))
        console.print()
    console.print(Text(f'$ gdb -p {pid} -ex "source $(ranklens-gdb-path)"', style="bold cyan"))
    for line in gdb_lines(pid):
        console.print(Text(line, style="bold" if line.startswith("(gdb)") else ""))


def draw_page(folder: Path, pid: int) -> None:
    """Write what a browser shows of `inspector report --html`."""
    output(BIN / "inspector", "report", pid, "--html", folder / "report.html")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,720"]
    options += [f"--user-data-dir={folder}/profile", f"--screenshot={ROOT}/docs/report.png"]
    subprocess.run(["chromium", *options, f"file://{folder}/report.html"], capture_output=True, check=True, timeout=300)


def main() -> None:
    """Run the program, look at it, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "jacobi3d"
        source = ROOT / "tests/programs/jacobi3d/jacobi3d.c"
        subprocess.run([BIN / "rankcc", "-g", "-O1", "-o", program, source, "-lm"], check=True)
        command = [BIN / "rankrun", "-n", "8", program, "--seconds", "60"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job, open(os.devnull, "w") as nowhere:
            try:
                if job.stdout is None or not job.stdout.readline():
                    raise SystemExit("the program printed nothing")
                console = Console(record=True, width=WIDTH, file=nowhere)
                draw(console, job.pid)
                draw_page(Path(folder), job.pid)
            finally:
                job.terminate()
    console.save_svg(str(ROOT / "docs/session.svg"), title="ranklens")


if __name__ == "__main__":
    main()
