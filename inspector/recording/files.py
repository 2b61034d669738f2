"""A recording as a file that other tools open: speedscope's, Perfetto's (Chrome's trace events), or folded stacks.

Takes a recording; gives texts piece by piece. Every name of the target is made harmless. Speedscope's form is that of
https://www.speedscope.app/file-format-schema.json, Perfetto's the Trace Event Format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from pieglobalsfind.stacks.call_tree import Call

from ..terminal.text import harmless
from .mpi_time import calls_of
from .recording import Calls, Recording

SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
MICROSECONDS = 1e6
LONGEST_NAME = 1000

Row = dict[str, object]


def _shown_name(call: Call) -> str:
    return harmless(call.function, LONGEST_NAME)


# ---- speedscope ----


def speedscope(recording: Recording, name: str) -> Iterator[str]:
    """All ranks together first, then a profile of each rank."""
    numbers: dict[Call, int] = {}
    stacks = [[numbers.setdefault(call, len(numbers)) for call in calls] for calls in recording.stacks]
    head: Row = {
        "$schema": SPEEDSCOPE_SCHEMA,
        "exporter": "ranklens",
        "name": harmless(name),
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(call) for call in numbers]},
    }
    yield json.dumps(head)[:-1] + ', "profiles": [\n'
    yield json.dumps(_merged(recording, stacks))
    for rank in recording.ranks:
        yield ",\n" + json.dumps(_of_rank(recording, stacks, rank))
    yield "]}\n"


def _frame(call: Call) -> Row:
    frame: Row = {"name": _shown_name(call)}
    place = call.file or call.library
    if place:
        frame["file"] = harmless(place, LONGEST_NAME)
    if call.line:
        frame["line"] = call.line
    return frame


def _merged(recording: Recording, stacks: Sequence[Sequence[int]]) -> Row:
    """Ranks' seconds added up by stack."""
    totals = totals_of(recording)
    samples, weights = [stacks[total] for total in totals], [round(total, 6) for total in totals.values()]
    return _profile(f"all {len(recording.ranks)} ranks, added up", 0.0, sum(weights), samples, weights)


def _of_rank(recording: Recording, stacks: Sequence[Sequence[int]], rank: int) -> Row:
    samples: list[Sequence[int]] = []
    weights: list[float] = []
    first = at = next((stretch.start for stretch in recording.stretches(rank)), 0.0)
    for start, end, stack in recording.stretches(rank):
        if start > at:  # it was elsewhere meanwhile
            samples.append([])
            weights.append(round(start - at, 6))
        samples.append(stacks[stack])
        weights.append(round(end - start, 6))
        at = end
    return _profile(f"rank {rank}", first, at, samples, weights)


def _profile(name: str, start: float, end: float, samples: Sequence[Sequence[int]], weights: Sequence[float]) -> Row:
    span: Row = {"startValue": round(start, 6), "endValue": round(end, 6)}
    return {"type": "sampled", "name": name, "unit": "seconds", **span, "samples": samples, "weights": weights}


def totals_of(recording: Recording) -> dict[int, float]:
    """Seconds by stack, of all ranks together."""
    totals: dict[int, float] = {}
    for held in recording.seconds.values():
        for stack, seconds in held.items():
            totals[stack] = totals.get(stack, 0.0) + seconds
    return dict(sorted(totals.items()))


# ---- folded ----


def folded(recording: Recording, name: str) -> Iterator[str]:
    """`rank 3;main;solve;MPI_Recv 1200`: milliseconds by rank and stack, outermost call first."""
    for rank in recording.ranks:
        lines: dict[str, float] = {}
        for stack, seconds in recording.seconds[rank].items():
            line = ";".join(
                [f"rank {rank}", *(_shown_name(call).replace(";", ":") for call in recording.stacks[stack])]
            )
            lines[line] = lines.get(line, 0.0) + seconds
        for line, seconds in sorted(lines.items()):
            if round(1000 * seconds):
                yield f"{line} {round(1000 * seconds)}\n"


# ---- Perfetto ----


def perfetto(recording: Recording, name: str) -> Iterator[str]:
    """A track for each rank with its calls as nested slices, and a counter of ranks in each MPI call."""
    yield '{"displayTimeUnit": "ms", "otherData": ' + json.dumps({"target": harmless(name)}) + ', "traceEvents": [\n'
    yield json.dumps({"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": harmless(name)}})
    for rank in recording.ranks:
        for key, value in (("thread_name", {"name": f"rank {rank}"}), ("thread_sort_index", {"sort_index": rank})):
            yield ",\n" + json.dumps({"ph": "M", "name": key, "pid": 1, "tid": rank + 1, "args": value})
        for row in _slices(recording, rank):
            yield ",\n" + json.dumps(row)
    for row in _counters(recording):
        yield ",\n" + json.dumps(row)
    yield "\n]}\n"


def _slices(recording: Recording, rank: int) -> Iterator[Row]:
    """A call is one slice as long as all samples have it, below the same callers."""
    open_calls: list[tuple[Call, float]] = []
    last = 0.0
    for start, end, stack in recording.stretches(rank):
        calls: Calls = recording.stacks[stack] if start <= last or not open_calls else ()
        shared = _shared(open_calls, calls)
        yield from _closed(open_calls, shared, last, rank)
        calls = recording.stacks[stack]
        open_calls += [(call, start) for call in calls[shared:]]
        last = end
    yield from _closed(open_calls, 0, last, rank)


def _shared(open_calls: Sequence[tuple[Call, float]], calls: Calls) -> int:
    pairs = zip(open_calls, calls)
    return next(
        (at for at, ((open_call, _), call) in enumerate(pairs) if open_call != call), min(len(open_calls), len(calls))
    )


def _closed(open_calls: list[tuple[Call, float]], keep: int, end: float, rank: int) -> Iterator[Row]:
    """Slices of the calls from `keep` on, which are taken away; callers first: slices of one extent nest in order."""
    ended = open_calls[keep:]
    del open_calls[keep:]
    for call, start in ended:
        row: Row = {"ph": "X", "name": _shown_name(call), "cat": "call", "pid": 1, "tid": rank + 1}
        row.update(ts=round(MICROSECONDS * start, 1), dur=round(MICROSECONDS * (end - start), 1))
        place = harmless(call.file or call.library, LONGEST_NAME)
        if place:
            row["args"] = {"at": f"{place}:{call.line}" if call.line else place}
        yield row


def _counters(recording: Recording) -> Iterator[Row]:
    """How many ranks are in each MPI call, whenever that changes."""
    calls = [call or "outside MPI" for call in calls_of(recording)]
    changes: dict[float, list[tuple[int, str]]] = {}
    for rank in recording.ranks:
        for start, end, stack in recording.stretches(rank):
            changes.setdefault(start, []).append((1, calls[stack]))
            changes.setdefault(end, []).append((-1, calls[stack]))
    counts: Mapping[str, int] = dict.fromkeys(sorted(set(calls)), 0)
    for at in sorted(changes):
        before, counts = counts, dict(counts)
        for change, call in changes[at]:
            counts[call] += change
        if counts != before:
            yield {"ph": "C", "name": "ranks in", "pid": 1, "tid": 0, "ts": round(MICROSECONDS * at, 1), "args": counts}


FORMS: Mapping[str, Callable[[Recording, str], Iterator[str]]] = {
    "speedscope": speedscope,
    "perfetto": perfetto,
    "folded": folded,
}
SUFFIXES = {
    ".speedscope.json": "speedscope",
    ".perfetto.json": "perfetto",
    ".trace.json": "perfetto",
    ".folded": "folded",
}
