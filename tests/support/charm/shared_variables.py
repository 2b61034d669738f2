"""Which questions about the programs of tests/oracle are about variables that under `none` all ranks share.

Takes the answers of processes and of a debugger without us, which was asked about the same job of AMPI's: it sees the
rank that runs. Gives the answers that are true.
"""

from __future__ import annotations

import re

from tests.support.host.plan import Answer, Answers, Query
from tests.support.oracle.program import RANKS, Program


def _words(names: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(names.split())})\b")


# The variables, and pointers to them.
SHARED = {
    "cells": _words(
        "calls kept last counter spacing matrix cells head counter_pointer head_pointer matrix_row kernels chosen label"
        " options ready octets small port wide total_bytes ratio precise wave packed samples heap_text heap_cell ticks"
        " opaque hidden uses progress visits cell scale"
    ),
    "shapes": _words(
        "secret ledger table history grid shapes census members greeting short_text corners couple triple perhaps"
        " either shared adder made numbers points unit_circle current coordinate pushed high_water unit inline_count"
        " depth count entered title favourite"
    ),
    "fields": _words(
        "counter tiny_number wide_number ratio precise wave ready label names table shifted vector matrix never text"
        " origin block bodies current window store hidden visits shares grid_size padding weights settings_ blank_value"
        " common __BLNK__ __fields_MOD_counter"
    ),
}
# Where what is a rank's own and what is all ranks' come together: a debugger without us can say it of one rank.
MIXED = {
    "cells": re.compile(
        r"(checkpoint|visit|measure|step \d+): info locals|measure: print weighted|step \d+: print \$|"
        r"checkpoint: .*(counter|spacing|kernels).*\brank\b.*|visit: (print|p) scale\[rank\]|visit: frame variable|"
        r"checkpoint: p rank \? counter : small"
    ),
    "shapes": re.compile(
        r"(stages::checkpoint|stages::DeepDriver::drive|.*lambda.*|step \d+): info locals|"
        r"stages::Stage::run: info args|"
        r"stages::Stage::run: print (\*this|(-object -- )?shape|\*\(geometry.*)|"
        r"stages::Stage::run: (frame variable.*|[pv] \*?&?shape|p \*\(geometry.*)|stages::checkpoint: frame variable|"
        r"stages::DeepDriver::drive: (frame variable|(print|p|v|v -T) (polygon|stage))|step \d+: print \$"
    ),
    "fields": re.compile(r"(stages::checkpoint|mpi_main): info locals"),
}


def truth(program: Program, natives: Answers, alone: Answers) -> Answers:
    """For each rank what its process says, but of shared variables what the debugger without us says."""
    found = []
    for query in program.queries:
        is_alone = is_shared(program, query) or is_mixed(program, query)
        found += [
            Answer(rank, query, (alone if is_alone else natives).text(0 if is_alone else rank, query))
            for rank in range(RANKS)
        ]
    return Answers(found)


def is_shared(program: Program, query: Query) -> bool:
    return bool(SHARED[program.name].search(query.command))


def is_mixed(program: Program, query: Query) -> bool:
    return bool(MIXED[program.name].fullmatch(str(query)))


def of_every_rank(program: Program) -> list[Query]:
    """What can be compared for every rank; the rest only for the one that runs."""
    return [query for query in program.queries if not is_mixed(program, query)]


def own_steps(program: Program) -> list[Query]:
    """The steps of a walk that say nothing of shared variables."""
    return [query for query in program.walk if not is_shared(program, query) and not is_mixed(program, query)]
