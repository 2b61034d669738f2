"""The oracle programs of `tests/oracle`, and what LLDB is asked about them.

Not asked, because LLDB 19 has no answer of its own that could be compared: static members of classes (it runs code in
the process to find them, which is refused in a rank that waits), the vector of unique pointers (it crashes), variables
that no code has set, and Fortran, which it doesn't know.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.host.plan import Query, at
from tests.oracle.program import Program

_C_GLOBALS = (
    *("counter", "&counter", "*&counter", "counter + 1", "counter == 7", "&spacing", "spacing", "spacing[1]", "matrix"),
    *("matrix[1]", "matrix[1][2]", "&matrix[2][1]", "matrix_row", "*matrix_row", "cells", "cells[1]", "cells[1].name"),
    *("cells[0].centre.x", "&cells[1].name", "cells[2].bounds", "cells[1].level", "cells[1].refined", "head", "*head"),
    *("*head->next", "head->next->next->next", "*head_pointer", "**head_pointer", "head == cells", "&head_pointer"),
    *("counter_pointer", "*counter_pointer", "counter_pointer == &counter", "kernels", "kernels[0]", "&kernels"),
    *("chosen", "primes", "&primes", "primes[2]", "title", "*title", "label", "&label", "options", "ready", "octets"),
    *("small", "port", "wide", "total_bytes", "ratio", "precise", "packed", "packed.value", "&packed.pair", "samples"),
    *("*samples", "heap_text", "*heap_cell", "heap_cell->next == head", "ticks", "opaque", "*(int *)opaque", "hidden"),
    *("sizeof(cells)", "&cells[2] - head", "weight_linear", "&weight_linear", "weight_square", "no_such_variable"),
)
_C_FRAMES = {
    "hold": ("rank", "size"),
    "checkpoint": ("visits", "&visits", "rank", "calls", "world_size", "&world_size", "progress", "&progress"),
    "visit": (
        "*cell",
        "cell->name",
        "cell->next->id",
        "cell->weight",
        "shift",
        "shift.y",
        "scale[rank]",
        "moved",
        "note",
    ),
    "measure": ("lengths[0]", "how", "*how", "mark", "factor", "count + 1"),
    "descend": ("depth", "path", "here"),
    "main": ("argc", "argv[1]", "rank", "world_size"),
}
_CXX_GLOBALS = (
    *("table", "&table", "table.size_", "history", "history[0]", "grid", "census", "members", "greeting", "short_text"),
    *("&greeting", "corners", "couple", "triple", "perhaps", "shared", "*shared", "&adder"),
)
# LLDB finds qualified names in every rank's module and calls them ambiguous; `target variable` shows the own one first
_CXX_QUALIFIED = (
    *("geometry::detail::v2::depth", "geometry::numbers", "geometry::points", "geometry::unit_circle"),
    *("geometry::current", "geometry::inline_count"),
)
_CXX_FRAMES = {
    "hold": ("rank", "size"),
    "stages::checkpoint": ("count", "&count", "rank", "world_size", "&world_size"),
    "stages::Stage::run": ("*this", "this->value", "value", "name", "corner_count", "next", "shape", "step"),
    "stages::DeepDriver::drive": ("rank_", "steps", "word", "local_names", "words", "polygon", "stage", "sum"),
    "main": ("argc", "rank", "driver", "world_size"),
}
UNSET = ("measure",)  # has variables that no code has set: what they hold is by chance
_NATIVE = ("frame variable", "frame info", "source list -c 3")


def _questions(frames: dict[str, tuple[str, ...]], names: Iterable[str], where: Iterable[str]) -> tuple[Query, ...]:
    found = [*at("", "bt")]
    for frame, expressions in frames.items():
        native = _NATIVE[1:] if frame in UNSET else _NATIVE
        found += at(frame, *native, *(f"p {one}" for one in expressions))
    for frame in where:
        found += at(frame, *(f"p {one}" for one in names))
    return tuple(found)


C = (*_questions(_C_FRAMES, _C_GLOBALS, ("checkpoint",)), *at("", *(f"p {one}" for one in _C_GLOBALS[:40])))
CXX = (
    *_questions(_CXX_FRAMES, _CXX_GLOBALS, ("main",)),
    *at("main", *(f"target variable {one}" for one in _CXX_QUALIFIED)),
)
PROGRAMS = (
    *(Program("cells", ("hold.c", "cells.c", "cells_main.c"), level, C) for level in ("-O0", "-O2")),
    Program("shapes", ("hold.c", "shapes.cpp", "shapes_main.cpp"), "-O0", CXX),
)
