"""`inspector merge`: stacks or reports of several processes or moments in one, and the ranks that are like no other.

Takes files of `inspector stacks --json` or `inspector report --json`; gives the same form for all ranks together. The
order of the files does not matter: of a rank that is in several, what was taken last counts.
"""

from __future__ import annotations

import argparse
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

from rich.text import Text

from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import MIGRATED_OUT
from pieglobalsfind.ranks import rankset
from pieglobalsfind.ranks.rankset import Span, compact, spans_of, written
from pieglobalsfind.stacks import call_tree
from pieglobalsfind.stacks.call_tree import Call

from ..analysis.report_schema import NAME as REPORT
from ..job.read_stacks import label
from ..output.adaptive_table import Listing
from ..output.table_cells import heading, ranks_text
from ..terminal.console import console
from ..terminal.forms import print_json
from ..terminal.text import harmless, of_ranks
from ..values.rank_span_map import RankValues, count, within
from .stacks import SCHEMA as STACKS

LARGEST = 1 << 30  # bytes of one file
PIECE = 1 << 20  # bytes that are read at once
MOST_RANKS = 1 << 20  # of a job
MOST_SPANS = 1 << 21  # of ranks and values in the result; a real job's has some thousands
ODD = 4  # groups that are printed, smallest first
MOST_CALLS = 5  # of each of them
AGAIN = "write the file again with --json"
MALFORMED = (LookupError, TypeError, AttributeError, ValueError, OverflowError)
Content = dict[str, Any]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Merge files of `inspector stacks --json`, or of `inspector report --json`, and name the "
        "ranks that are like the fewest others."
    )
    parser.epilog = "exit status: 0 done, 1 no ranks in any file, 2 bad call or unreadable file"
    parser.add_argument("files", metavar="FILE", nargs="+", help="as written by --json")
    parser.add_argument("--json", action="store_true", help="as JSON of the same form")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector merge`; returns the exit status."""
    contents = [read(Path(name)) for name in options.files]
    kinds = {content["schema"] for content in contents}
    if len(kinds) > 1:
        raise UsageError("stacks and reports can't be merged with each other", "merge each kind by itself")
    check_one_job(options.files, contents)
    ordered = sorted(contents, key=lambda content: str(content.get("taken", "")))
    merge = merge_stacks if kinds == {STACKS} else merge_reports
    try:
        return show(merge(ordered), kinds, options.json)
    except MALFORMED as error:
        name = next((name for name, content in zip(options.files, contents) if is_malformed(content, merge)), "a file")
        raise UsageError(f"{name} does not follow its schema", "write it again with --json") from error


def is_malformed(content: Content, merge: Callable[[Iterable[Content]], Content]) -> bool:
    """Whether the file alone does not tell."""
    try:
        merge([content])
    except MALFORMED:
        return True
    return False


def check_one_job(names: Sequence[str], contents: Sequence[Content]) -> None:
    """Raises `UsageError` for files of two jobs: equal numbers are other ranks there. Old files do not name theirs."""
    for field, wording in (("job", "job {}"), ("rank_count", "a job of {} ranks")):
        named = [(name, content[field]) for name, content in zip(names, contents) if content.get(field)]
        for name, value in named:
            if value != named[0][1]:
                first, other = (wording.format(str(each)[:80]) for each in (named[0][1], value))
                raise UsageError(f"{named[0][0]} is of {first}, {name} is of {other}", "merge files of one job")


def show(merged: Content, kinds: set[str], as_json: bool) -> int:
    """Print what was merged."""
    if as_json:
        print_json(merged)
    elif kinds == {STACKS}:
        _show_stacks(merged)
    else:
        show_report(merged)
    return 0 if merged.get("stacks") or merged.get("ranks") else 1


def read(place: Path) -> Content:
    """One file; raises `UsageError` if it is none of ours."""
    try:
        content = json.loads(text_of(place))
    except OSError as error:
        raise UsageError(f"{place} can't be read, {error.strerror}", "name files written by --json") from error
    except json.JSONDecodeError as error:
        wrong = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise UsageError(f"{place} is not JSON, {wrong}", "name files written by --json") from error
    except UnicodeError as error:
        raise UsageError(f"{place} is not JSON, it is not text", "name files written by --json") from error
    except (RecursionError, ValueError) as error:
        wrong = "is nested too deeply" if isinstance(error, RecursionError) else "has a number of too many digits"
        raise UsageError(f"{place} {wrong}", "name files written by --json") from error
    if not isinstance(content, dict) or content.get("schema") not in (STACKS, REPORT):
        raise UsageError(f"{place} is neither stacks nor a report", f"its schema has to be {STACKS} or {REPORT}")
    return content


def text_of(place: Path) -> str:
    """What is in a file, or comes out of a pipe as long as a process has it open for writing."""
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK)  # no wait for a pipe without a writer
    with os.fdopen(descriptor, "rb") as file:
        os.set_blocking(descriptor, True)
        kind = os.fstat(descriptor).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or stat.S_ISDIR(kind)):
            raise UsageError(f"{place} is not a file that --json has written")
        content = bytearray()
        while len(content) <= LARGEST:  # by pieces: the memory for the largest file is not asked for beforehand
            piece = file.read(PIECE)
            if not piece:
                return content.decode()
            content += piece
    raise UsageError(f"{place} is larger than {LARGEST >> 30} GB", "name files written by --json")


class RankReader:
    """Reads the sets of ranks of one table in a file.

    Such a table names each rank of the job once at most: a short text can't stand for more ranks than there are.
    """

    def __init__(self, content: Content) -> None:
        self.rank_count = int(content["rank_count"])
        if not 0 <= self.rank_count <= MOST_RANKS:
            raise UsageError(f"a file is of {self.rank_count} ranks", f"jobs of up to {MOST_RANKS} ranks can be merged")
        self._left = self.rank_count

    def spans(self, text: object) -> list[Span]:
        """The spans of a set, which is written in numbers alone.

        Raises `UsageError` for any other text, and once the sets have named more ranks than the job has.
        """
        parsed = rankset.recognize(str(text)) if text else ()
        spans = [item for item in parsed or () if isinstance(item, Span)]
        beyond = any(span.last >= self.rank_count for span in spans)
        if parsed is None or len(spans) != len(parsed) or beyond:
            raise UsageError(f"{str(text)[:40]!r} in a file is not a set of its ranks", AGAIN)
        self._left -= count(spans)
        if self._left < 0:
            raise UsageError("a file names a rank twice", AGAIN)
        return spans

    def ranks(self, text: object) -> Iterator[int]:
        """The ranks of a set, as `spans` reads it."""
        for span in self.spans(text):
            yield from range(span.first, span.last + 1)


def merge_stacks(contents: Iterable[Content]) -> Content:
    """One file's form for all; every rank once."""
    stacks: dict[int, tuple[tuple[object, ...], ...]] = {}
    missing: dict[int, str] = {}
    targets, job, rank_count, taken = [], "", 0, ""
    for content in contents:
        job = str(content.get("job") or job)
        targets.append(str(content["target"]))
        rank_count, taken = max(rank_count, int(content["rank_count"])), str(content["taken"])
        reader = RankReader(content)
        for group in content["stacks"]:
            calls = tuple(
                (str(c["function"]), str(c["file"]), int(c["line"]), str(c["library"])) for c in group["calls"]
            )
            for rank in reader.ranks(group["ranks"]):
                stacks[rank] = calls
                missing.pop(rank, None)
        for group in content["missing"]:
            for rank in reader.ranks(group["ranks"]):
                stacks.pop(rank, None)
                missing[rank] = str(group["reason"])
    keys = ("function", "file", "line", "library")
    return {
        "schema": STACKS,
        "target": ", ".join(dict.fromkeys(targets)),
        "job": job,
        "taken": taken,
        "how": "merged",
        "rank_count": rank_count,
        "stacks": [
            {"ranks": compact(ranks), "calls": [dict(zip(keys, call)) for call in calls]}
            for calls, ranks in by_size(stacks)
        ],
        "missing": [{"ranks": compact(ranks), "reason": reason} for reason, ranks in by_size(missing)],
    }


def by_size(by_rank: dict[int, Any]) -> list[tuple[Any, list[int]]]:
    """What several ranks have in common, and the ranks; most ranks first."""
    groups: dict[Any, list[int]] = {}
    for rank, value in sorted(by_rank.items()):
        groups.setdefault(value, []).append(rank)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[1]))


def merge_reports(contents: Iterable[Content]) -> Content:
    """The ranks, globals and payload of all; of other parts the last file's."""
    merged: Content = {}
    ranks: dict[int, Content] = {}
    payload: dict[int, Content] = {}
    variables: dict[tuple[str, str], Content] = {}
    values: dict[tuple[str, str], RankValues] = {}
    spans = 0
    for content in contents:
        merged.update(content)
        here = {
            int(rank["rank"]): rank for rank in content["ranks"] if knows_better(rank, ranks.get(int(rank["rank"])))
        }
        ranks.update(here)
        present = spans_of(here)
        payload.update({int(sizes["rank"]): sizes for sizes in content["payload"] if int(sizes["rank"]) in here})
        for variable in content["globals"]:
            key = str(variable["name"]), str(variable["object"])
            variables[key] = variable
            of_variable = values.setdefault(key, RankValues())
            before = len(of_variable)
            enter_groups(of_variable, variable["groups"], RankReader(content), present)
            spans += len(of_variable) - before
            if spans > MOST_SPANS:
                raise UsageError("the values are of too many sets of ranks", "merge fewer files")
    merged["ranks"] = [ranks[rank] for rank in sorted(ranks)]
    merged["payload"] = [payload[rank] for rank in sorted(payload)]
    merged["globals"] = [_regrouped(variable, values[key]) for key, variable in variables.items() if key in values]
    return merged


def knows_better(later: Content, earlier: Optional[Content]) -> bool:
    """Whether of two records of a rank the one that was taken later is right: of another process, only if it moved."""
    if earlier is None:
        return True
    old, new = (int(record.get("moves", 0)) for record in (earlier, later))
    return new > old or (new == old and (later["state"] != MIGRATED_OUT or earlier["state"] == MIGRATED_OUT))


def enter_groups(values: RankValues, groups: Iterable[Content], reader: RankReader, here: list[Span]) -> None:
    """Enter a variable's values in the ranks that are `here`, as ascending spans."""
    firsts = [span.first for span in here]
    for group in groups:
        for span in reader.spans(group["ranks"]):
            for part in within(span, here, firsts):
                values.enter(part, str(group["value"]))


def _regrouped(variable: Content, values: RankValues) -> Content:
    groups = [{"ranks": written(spans), "value": value} for value, spans in values.groups()]
    return {**variable, "differs": len(groups) > 1, "groups": groups}


def _show_stacks(merged: Content) -> None:
    screen = console()
    reader = RankReader(merged)
    stacks = [
        (rank, [_call_of(call) for call in group["calls"]])
        for group in merged["stacks"]
        for rank in reader.ranks(group["ranks"])
    ]
    screen.print(Text(f"{harmless(merged['target'])}: {len(stacks)} of {merged['rank_count']} ranks"))
    for line in call_tree.lines(call_tree.merge(stacks)):
        screen.print(Text(harmless(line)), soft_wrap=True)
    if len(merged["stacks"]) > 1:
        heading(screen, "Odd ones out", "the stacks that the fewest ranks have")
        for group in merged["stacks"][: -ODD - 1 : -1]:
            screen.print(Text(f"{of_ranks(group['ranks'])}: {harmless(way_to(group['calls']))}"), soft_wrap=True)
    for row in merged["missing"]:
        screen.print(Text(f"! {of_ranks(row['ranks'])}: {harmless(row['reason'])}", style="bold red"), soft_wrap=True)


def way_to(calls: list[Content]) -> str:
    """`... > even > receive > MPI_Recv from librankmpi.so`: the innermost calls of a stack."""
    shown = [_call_of(call) for call in calls[-MOST_CALLS:]]
    names = [*(call.function for call in shown[:-1]), *(label(call) for call in shown[-1:])]
    return " > ".join(["..."] * (len(calls) > MOST_CALLS) + names) or "??"


def _call_of(content: Content) -> Call:
    return Call(str(content["function"]), str(content["file"]), int(content["line"]), str(content["library"]))


def show_report(merged: Content) -> None:
    """Print merged reports as text."""
    screen = console()
    differing = [variable for variable in merged["globals"] if variable["differs"]]
    how = f"{len(merged['ranks'])} ranks, {len(differing)} globals differ; rarest values first"
    heading(screen, "Odd ones out", how)
    table = Listing(("variable", "ranks", "value"))
    rarest = [(RankReader(merged).spans(variable["groups"][-1]["ranks"]), variable) for variable in differing]
    for ranks, variable in sorted(rarest, key=lambda row: count(row[0])):
        value = variable["groups"][-1]["value"]
        shown = ranks_text(rank for span in ranks for rank in range(span.first, span.last + 1))
        table.add((harmless(variable["name"]), shown, harmless(value)[:80]))
    screen.print(table)
