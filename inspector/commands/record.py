"""`inspector record`: samples all ranks' stacks over a time, and prints how long each rank was in which MPI call.

Takes a PID; writes a file for speedscope, Perfetto or flame-graph tools, and prints a table, when the job ends, the
time is over, or the user presses Ctrl-C. Each look pauses the job; there are fewer where that would slow it down.
"""

from __future__ import annotations

import argparse
import select
import signal
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.sampler import Calls, Sample, Sampler
from pieglobalsfind.shell.atomic_file import check_place, whole_file
from pieglobalsfind.shell.signals import exit_status, on_signal
from pieglobalsfind.targets.live import LiveTarget

from ..job.flight_recorder import is_ending, seconds_of
from ..job.target_option import explained
from ..recording.files import FORMS, SUFFIXES
from ..recording.mpi_time import OUTSIDE, CallTime, call_times
from ..recording.pace import MOST_LOST, Pace
from ..recording.recording import Recording
from ..terminal.forms import print_json
from ..terminal.text import harmless
from .events import Asked

SCHEMA = "ranklens-record-1"
HINT = "name another file by -o"
MOST_RATE = 1000
MOST_FAILURES = 50  # looks in a row that find no ranks, or can't stop the process
MOST_RANK_ROWS = 16
RATE = 100


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Sample the stacks of all ranks of a running job until it ends, for a time, or until Ctrl-C; write "
        "them to a file, and print how long each rank was in which MPI call. Each sample pauses the job. There are "
        "100 a second, or fewer where pauses and the command's own processor time would take more than 2 % of the "
        "job's time; the output says so."
    )
    parser.epilog = "exit status: 0 done (by Ctrl-C, too), 1 no stack was found, 2 bad call or unreadable target"
    parser.add_argument("target", metavar="PID", help="a running process")
    parser.add_argument(
        "-o", metavar="FILE", dest="file", help="write the recording: .speedscope.json, .perfetto.json or .folded"
    )
    parser.add_argument("--format", choices=tuple(FORMS), help="the form of FILE, where its name does not say it")
    parser.add_argument("--rate", metavar="N", type=int, default=RATE, help="samples a second, at most (100)")
    parser.add_argument("--duration", metavar="TIME", help="for so long, not until the job ends: 10s, 2min")
    parser.add_argument("--rank", metavar="SET", default="all", help="these ranks only: 0-3,7")
    parser.add_argument("--lines", action="store_true", help="calls of a function at different lines apart")
    parser.add_argument("--runtime", action="store_true", help="with the MPI runtime's own frames")
    parser.add_argument("--json", action="store_true", help="the table as JSON (docs/record-schema.md)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector record`; returns the exit status."""
    pid = process_of(options)
    form = form_of(options)
    chosen = numbers_of(options.rank)
    duration = seconds_of(options.duration, "--duration") if options.duration is not None else None
    if options.file is not None:
        check_place(Path(options.file), HINT)
    live = LiveTarget(pid)
    recorder = Recorder(live, Recording(options.lines), Pace(pid, 1 / options.rate), chosen, duration, Asked())
    with on_signal(recorder.asked.hear):
        try:
            recorder.record(options.runtime)
        except RanklensError as error:
            raise explained(live, error) from error
        if options.file is not None:
            with whole_file(Path(options.file), HINT) as file:
                for text in FORMS[form](recorder.recording, live.description):
                    file.write(text.encode("utf-8", "backslashreplace"))
        tell(recorder, live.description, options)
    if recorder.asked.by not in (0, signal.SIGINT):
        return exit_status(recorder.asked.by)
    return 0 if recorder.recording.ranks else 1


def process_of(options: argparse.Namespace) -> int:
    """Return the pid; raises `UsageError`."""
    if not options.target.isdecimal():
        raise UsageError(f"{options.target!r} is not a process", "give the PID of a running job")
    if not 1 <= options.rate <= MOST_RATE:
        raise UsageError(f"--rate takes 1 to {MOST_RATE} samples a second, and not {options.rate}", "leave it out")
    return int(options.target)


def form_of(options: argparse.Namespace) -> str:
    """The form of the file, by its name or as the user says."""
    if options.file is None:
        if options.format is not None:
            raise UsageError("--format is the form of a file", "name one by -o")
        return ""
    by_name = next((form for suffix, form in SUFFIXES.items() if options.file.endswith(suffix)), "")
    if options.format is None and not by_name:
        raise UsageError(
            f"the name {options.file!r} does not say which form the file is to have",
            f"end it with {', '.join(SUFFIXES)}, or give --format",
        )
    return str(options.format or by_name)


def numbers_of(text: str) -> Optional[rankset.RankSet]:
    """The ranks that are recorded, None for all; states and functions change meanwhile, so they name none."""
    chosen = rankset.parse(text)
    if chosen == rankset.ALL:
        return None
    if not all(isinstance(part, rankset.Span) for part in chosen):
        raise UsageError("--rank takes numbers here: what ranks do changes while they are recorded", "--rank 0-3,7")
    return chosen


@dataclass
class Recorder:
    """Fills a recording until the job ends, the time is over, or a signal comes (`asked.by`).

    `taken` is when it began (UTC).
    """

    live: LiveTarget
    recording: Recording
    pace: Pace
    chosen: Optional[rankset.RankSet]
    duration: Optional[float]
    asked: Asked
    taken: str = ""

    def record(self, with_runtime: bool) -> None:
        """Raises `RanklensError` if the process has no ranks, or can't be stopped."""
        sampler = Sampler(self.live, with_runtime)
        first: Optional[float] = None
        failures = 0
        while not self.asked.by:
            began, busy = time.monotonic(), time.process_time()
            stopped = 0.0
            try:
                sample = sampler.look()
                failures, stopped = 0, sample.stopped
                first = self._first(sampler, sample) if first is None else first
                self.recording.add(sample.clock - first, *self._wanted(sample))
            except RanklensError:
                failures += 1
                if first is not None and is_ending(self.live.pid):
                    break
                if first is None or failures > MOST_FAILURES:
                    raise
            if first is not None and self.duration is not None and time.monotonic() - first >= self.duration:
                break
            left = self.pace.wait(began, stopped, time.process_time() - busy)
            select.select([self.asked.descriptor], [], [], left)
        if first is not None:
            self.recording.finish(time.monotonic() - first)

    def _first(self, sampler: Sampler, sample: Sample) -> float:
        """The moment of the first sample, which says that recording has begun. Raises `UsageError` for wrong ranks."""
        if self.chosen is not None and sampler.table is not None:
            rankset.check(self.chosen, sampler.table)
        self.taken = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        print(f"inspector: recording {self.live.description}; Ctrl-C ends it", file=sys.stderr, flush=True)
        return sample.clock

    def _wanted(self, sample: Sample) -> tuple[dict[int, Calls], dict[int, str]]:
        calls = {rank: call for rank, call in sample.calls.items() if self._is_wanted(rank)}
        return calls, {rank: reason for rank, reason in sample.missing.items() if self._is_wanted(rank)}

    def _is_wanted(self, rank: int) -> bool:
        if self.chosen is None:
            return True
        return any(isinstance(span, rankset.Span) and span.first <= rank <= span.last for span in self.chosen)


# ---- what is printed at the end ----


def tell(recorder: Recorder, target: str, options: argparse.Namespace) -> None:
    """Print the times, as text or JSON."""
    times = call_times(recorder.recording)
    if options.json:
        print_json(as_json(recorder, target, times))
    else:
        show(recorder, target, times)
    if options.file is not None:
        print(f"inspector: {options.file} is written", file=sys.stderr)


def how(recorder: Recorder) -> str:
    """`842 samples in 10.0 s, 84 a second; the job stood still for 0.6 % of the time`."""
    recording = recorder.recording
    rate = recording.samples / recording.end if recording.end else 0.0
    slower = ""
    if recorder.pace.slowed > recording.samples // 2:
        slower = f"; more samples would have slowed it down by more than {100 * MOST_LOST:.0f} %"
    coarse = f"; changes are kept {recording.grain:.2g} s apart" if recording.grain else ""
    return (
        f"{recording.samples} samples in {recording.end:.1f} s, {rate:.0f} a second; the job stood still for "
        f"{100 * recorder.pace.stopped_share:.1f} % of the time{coarse}{slower}"
    )


def show(recorder: Recorder, target: str, times: list[CallTime]) -> None:
    """Print the table of times."""
    from rich.text import Text  # late: not for --json

    from ..output.adaptive_table import Listing
    from ..output.table_cells import heading
    from ..terminal.console import console

    screen = console()
    ranks = recorder.recording.ranks
    screen.print(Text(f"{harmless(target)}: {len(ranks)} ranks", style="bold"))
    screen.print(Text(how(recorder), style="dim"))
    if not ranks:
        return
    heading(screen, "Time in MPI calls", "per rank, by the outermost MPI call of each sample")
    table = Listing(("call", "mean", "least", "most"), (1,))
    for call_time in times:
        least, most = (f"{call_time.seconds[rank]:.2f} s, rank {rank}" for rank in (call_time.least, call_time.most))
        table.add((name_of(call_time), f"{call_time.mean:.2f} s", least, most))
    screen.print(table)
    if len(ranks) <= MOST_RANK_ROWS:
        heading(screen, "Time of each rank", "seconds")
        each = Listing(("rank", *map(name_of, times)), range(len(times) + 1))
        for rank in ranks:
            each.add((str(rank), *(f"{call_time.seconds.get(rank, 0.0):.2f}" for call_time in times)))
        screen.print(each)


def name_of(call_time: CallTime) -> str:
    """Return the call's name in the table."""
    return "(outside MPI)" if call_time.call == OUTSIDE else call_time.call


def as_json(recorder: Recorder, target: str, times: list[CallTime]) -> dict[str, object]:
    """Return the times as JSON has them."""
    recording = recorder.recording
    return {
        "schema": SCHEMA,
        "target": target,
        "taken": recorder.taken,
        "how": how(recorder),
        "seconds": round(recording.end, 6),
        "samples": recording.samples,
        "stopped_share": round(recorder.pace.stopped_share, 6),
        "ranks": [
            {"rank": rank, "outside_mpi": _rounded(times, rank, OUTSIDE), "calls": _calls(times, rank)}
            for rank in recording.ranks
        ],
    }


def _rounded(times: list[CallTime], rank: int, call: str) -> float:
    return round(next((call_time.seconds.get(rank, 0.0) for call_time in times if call_time.call == call), 0.0), 6)


def _calls(times: list[CallTime], rank: int) -> dict[str, float]:
    return {
        call_time.call: _rounded(times, rank, call_time.call)
        for call_time in times
        if call_time.call != OUTSIDE and call_time.seconds.get(rank)
    }
