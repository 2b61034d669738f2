"""The oracle programs of `tests/oracle`, what LLDB is asked about them, and what it is not asked, with the reason.

C++ stays at -O0: at -O2 LLDB 19 loses a process's own stack behind the first function that has a cold part.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.host.plan import Query, at
from tests.support.oracle.exceptions import NeverAsked
from tests.support.oracle.program import Program

NEVER_ASKED = (
    NeverAsked(
        r"register .*|disassemble .*|(p|x/\d*\w*) \$(pc|sp|fp|rip|rsp|rbp)", "addresses, and code that has them in it"
    ),
    NeverAsked(r"thread (list|info).*|process .*", "a rank is one thread of many; a process has all of them"),
    NeverAsked(
        r"(image|target modules) .*", "every rank has modules, and all are listed; where in a file is the linker's"
    ),
    NeverAsked(r"memory find .*", "shows what lies beside the found"),
    NeverAsked(r"type lookup .*|disassemble -n .*", "says the same for the module of every rank"),
    NeverAsked(
        r"frame variable (-g|--show-globals)", "LLDB lists globals in the order in which it has met their units"
    ),
    NeverAsked(r"frame select \d+|bt \d+", "counts from the innermost frame, which is the MPI library's"),
    NeverAsked(r"frame diagnose", "is about the signal that stopped a kernel thread"),
    NeverAsked(r"breakpoint list", "says `Current breakpoints:` of our own one, though it doesn't list it"),
    NeverAsked(r"expr(ession)? .*\$\w+ = .*", "persistent variables are of the debugger; ranks share it"),
    NeverAsked(
        r"p .*(entered|\.size\(\)|corners\(\)|corners\[1\].*|greeting\[0\])",
        "calls a function in the process (for static members too): LLDB refuses it in a rank that waits",
    ),
    NeverAsked(r"p shapes", "LLDB 19 crashes on the vector of unique pointers"),
    NeverAsked(r"p -O .*|po .*this.*", "objects describe themselves by running code"),
)

_C_GLOBALS = (
    *("counter", "&counter", "*&counter", "counter + 1", "counter == 7", "&spacing", "spacing", "spacing[1]", "matrix"),
    *("matrix[1]", "matrix[1][2]", "&matrix[2][1]", "matrix_row", "*matrix_row", "cells", "cells[1]", "cells[1].name"),
    *("cells[0].centre.x", "&cells[1].name", "cells[2].bounds", "cells[1].level", "cells[1].refined", "head", "*head"),
    *("*head->next", "head->next->next->next", "*head_pointer", "**head_pointer", "head == cells", "&head_pointer"),
    *("counter_pointer", "*counter_pointer", "counter_pointer == &counter", "kernels", "kernels[0]", "&kernels"),
    *("chosen", "primes", "&primes", "primes[2]", "title", "*title", "label", "&label", "options", "ready", "octets"),
    *("small", "port", "wide", "total_bytes", "ratio", "precise", "packed", "packed.value", "&packed.pair", "samples"),
    *("*samples", "heap_text", "*heap_cell", "heap_cell->next == head", "ticks", "opaque", "*(int *)opaque", "hidden"),
    *("sizeof(struct cell)", "(long)&counter - (long)&matrix", "head->next->next->id", "*(struct cell (*)[2])head"),
    *("matrix[1][1] * counter", "counter_pointer[0]", "counter > 5 && ready", "(char)title[0]", "kernels[0](1.0)"),
    *("@counter", "counter +"),
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
_C_NATIVE = (
    *(
        "p/x counter",
        "p/t small",
        "p/c matrix[1][2]",
        "p/x cells[1].bounds",
        "p/d matrix",
        "po counter",
        "call counter",
    ),
    *("print counter", "expr counter + 1", "expression -l c -- counter + 2", "expr --format x -- counter"),
    *("x/3dw &counter", "x/s title", "memory read -f d -s 4 -c 3 &counter", "memory read -t int -c 2 primes"),
    *(
        "source info",
        "target variable counter",
        "target variable hidden",
        "target variable &counter",
        "target variable cells[1].name",
    ),
    *("source list -n checkpoint", "source list -n visit -c 4", "thread backtrace -s 2", "up", "down"),
    *("frame select -r 1", "frame variable counter", "frame variable visits", "frame variable --no-args", "v rank"),
    *("frame variable --no-locals", "frame variable -T rank", "var rank", "p cells[rank]", "p &cells[rank].centre"),
    *("p world_size + rank", "p rank ? counter : small", "language cplusplus demangle _Z1fv"),
)
_CXX_NATIVE = (
    *("target variable geometry::Shape::made", "target variable secret", "target variable ledger", "source info"),
    *("target variable history", "target variable history[0]", "target variable grid", "target variable census"),
    *("target variable members", "target variable greeting", "target variable corners", "target variable couple"),
    *("target variable triple", "target variable perhaps", "target variable shared", "target variable *shared"),
    *("target variable either", "target variable title", "source list -n stages::checkpoint", "p count", "p &count"),
    *("p ::table", "p *table.cells_", "p table.cells_[2]", "p table.self_ == &table", "parray 5 table.cells_"),
    *("p sizeof(Table)", "p sizeof(geometry::Polygon)", "p geometry::Colour::blue", "p (geometry::Colour)5"),
    *("p (long)&table - (long)&history", "p couple.first", "p either", "p *this", "p geometry::no_such_name"),
)
_CXX_RUN = (
    *("p *(geometry::Polygon *) &shape", "frame variable -d run-target shape", "frame variable -d no-run-target shape"),
    *(
        "frame variable *this",
        "frame variable name",
        "frame variable -T *this",
        "frame variable -P 1 shape",
        "p/x value",
    ),
    *("p &shape", "p *&shape", "p this", "po name", "v shape", "v this->name", "expr -l c++ -- value + 1"),
    *("p sizeof(*this)", "p typeid(shape).name()"),
)
_CXX_DRIVE = (
    *("p local_names", "p words[1]", "p enter", "v polygon", "v -T polygon", "p polygon.points_", "p this->rank_"),
    *("p stage.name", "v stage", "v words[0]", "v steps", "p rank_ * 2"),
)
_CXX_START = (
    *("frame variable", "frame info", "source list -c 3", "p *driver", "p rank", "p word", "p driver"),
    *("v -d no-run-target driver", "v -d no-run-target *driver"),
)
# LLDB 19 has no types of Fortran: a common block is a symbol to it, and a variable is nothing that can be evaluated
_FORTRAN_FRAMES = {
    "hold": ("frame variable", "p rank"),
    "__stages_MOD_checkpoint": ("p visits", "frame variable", "target variable counter"),
    "__stages_MOD_measure": ("p word", "up", "down", "source info", "thread backtrace -s 3"),
    "__stages_MOD_descend": ("frame variable", "source list -n __stages_MOD_checkpoint"),
    "MAIN__": ("frame variable", "p greeting"),
}
_FORTRAN_DATA = (
    *("x/2dw &settings_", "x/4dw &settings_", "memory read -f d -s 4 -c 2 &settings_", "p *(int *)&settings_"),
    *("p ((int *)&settings_)[1]", "p ((double *)&settings_)[1]", "p *(double (*)[3])&settings_", "p &settings_"),
    *("p *(float *)&__BLNK__", "x/1fw &__BLNK__", "p (int)settings_"),
    *("p (int)__fields_MOD_counter", "x/2dw &__fields_MOD_counter", "p __fields_MOD_fill"),
)
_NOT_LISTED = ("no_such_variable", "primes", "title")  # constants: a process's core file does not hold them
# The same values by other commands and formats, and in frames further out.
_C_OUTER = (
    *(f"target variable {name}" for name in _C_GLOBALS if name.isidentifier() and name not in _NOT_LISTED),
    *("target variable matrix[1][2]", "target variable *head", "target variable head->next->id"),
    *(f"p/x {one}" for one in ("counter", "counter + 1", "spacing[1]", "matrix[1]")),
    *(f"p/x {one}" for one in ("primes", "small", "wide", "octets")),
    *(f"p/d {one}" for one in ("ready", "port", "title[0]", "label", "cells[1].level", "total_bytes", "packed")),
    *(f"p/c {one}" for one in ("title[0]", "label", "octets[0]", "cells[1].name")),
    *(f"p/t {one}" for one in ("small", "port", "options", "primes[2]")),
    *(f"expr -- {one}" for one in ("counter * 3", "matrix[1][2] - 1", "head->next->id + counter", "*counter_pointer")),
    *(f"expr -f d -- {one}" for one in ("counter", "primes", "cells[0].centre", "packed")),
    *("memory read -f x -s 4 -c 4 &matrix", "memory read -f f -s 8 -c 2 spacing", "x/4xb &wide", "x/2xw primes"),
    *("memory read -t double -c 2 spacing", "parray 3 spacing", "parray 3 primes", "p *cells@2", "expr -T -- counter"),
    *("v counter", "p &cells[0]", "p cells[rank].level", "p (long)counter_pointer - (long)&counter"),
)
_C_INNER = (
    *("v cell", "v *cell", "v cell->name", "v -T shift", "v &shift", "v scale", "v note", "p &shift", "p shift.x"),
    *("p cell->level", "p/x cell->id", "v cell->level", "p cell->centre", "v cell->centre"),
    *("p *cell->next", "p cell == head", "p cell->next == head->next", "p/x rank", "p sizeof(*cell)", "p &cell->name"),
    *("expr -- cell->id * 2", "expr -f x -- rank", "v -d no-run-target *cell", "v -P 1 cell", "p counter + rank"),
    *("target variable counter", "target variable cells", "p -- shift"),
    *("po cell->id", "p cell->bounds", "v cell->bounds"),
)
_C_BELOW = {
    "measure": ("v mark", "v how", "v -T mark", "p how == kernels[0]", "p/x count", "v factor", "p &how", "up", "down"),
    "descend": (
        *("v depth", "v path", "v *here", "p *here"),
        *("p depth + 1", "p &depth", "p/x depth", "p here->id", "v -T here"),
    ),
    "hold": (
        *("v rank", "v size", "p rank + size", "p &rank"),
        *("p/x size", "v -T rank", "p counter", "target variable counter"),
    ),
}
_CXX_OUTER = (
    *(f"expr -- {one}" for one in ("table.size_ + 1", "history[0]", "couple.second", "geometry::inline_count * 2")),
    *(f"target variable {one}" for one in ("table.size_", "couple.first", "corners[0]", "table.cells_")),
    *(f"p/x {one}" for one in ("table.size_", "history[0]", "geometry::detail::v2::depth", "geometry::inline_count")),
    *(f"p &{one}" for one in ("table.size_", "history", "grid", "census")),
    *(f"p &{one}" for one in ("couple", "couple.first", "members", "corners")),
    *(f"p sizeof({one})" for one in ("table", "history", "grid", "couple", "triple", "perhaps", "*shared")),
    *("v argc", "v rank", "v driver", "v *driver", "v -T rank", "p rank + 1", "p argc == 2", "p/x rank", "p &rank"),
    *("memory read -f d -s 4 -c 1 &table.size_", "x/1dw &table.size_", "p (void *)&table == (void *)table.self_"),
    *("p table.self_->size_", "p *table.self_", "p table.cells_[0]", "p table.cells_[1]", "parray 2 table.cells_"),
    *("p no_such_name", "p geometry::no_such_name", "down"),
)
_CXX_BELOW = {
    "stages::checkpoint": (
        *("v count", "v rank", "v world_size", "p count + 1"),
        *("p/x count", "p &rank", "p rank == world_size", "v -T count"),
        *("expr -- count * 2", "expr -f x -- rank", "p sizeof(count)"),
        *("p table.size_ + count", "p history", "p members"),
        *("p grid", "p census", "p couple", "p triple"),
        *("p *shared", "p greeting", "p short_text", "p corners", "p &adder"),
        *("v &count", "v &rank", "frame variable -T", "frame variable --no-args", "frame variable --no-locals"),
        *("p table", "p table.size_", "p &table", "p geometry::detail::v2::depth", "p history[0]"),
    ),
    "stages::Stage::run": (
        *("v value", "v name", "v step", "v next"),
        *("v corner_count", "v -T value", "p value + 1", "p &value"),
        *("p this->name", "p sizeof(shape)", "v &value", "frame variable -T", "expr -- value * 3"),
        *("p/x corner_count", "p &step", "p &name", "p this == &next", "source info"),
    ),
    "stages::DeepDriver::drive": (
        *("v word", "v sum", "v local_names", "v words"),
        *("v rank_", "v this->rank_", "p sum + 1", "p &word", "p &polygon"),
        *("p sizeof(words)", "p table.size_", "v -T word", "p/x rank_"),
        *("expr -- rank_ + 1", "source info", "up", "down"),
    ),
    "stages::start": ("v driver", "v rank", "p rank + 1", "p &rank", "v -T rank", "source info", "up"),
}
_FORTRAN_BELOW = {
    "hold": (
        *("p size", "v rank", "v size", "p rank + size", "p &rank", "v -T rank", "p/x rank", "x/2xw &settings_"),
        *("memory read -f x -s 4 -c 2 &settings_", "p/x *(int *)&settings_", "p *(int (*)[2])&settings_", "up", "down"),
        *("p (long)&settings_ == (long)&settings_", "expr -- *(int *)&settings_ + 1", "x/1xg &settings_"),
    ),
    "__stages_MOD_checkpoint": ("source list -c 5", "source info", "up", "down", "thread backtrace -s 2", "p rank"),
    "__stages_MOD_measure": ("source list -c 5", "p &word", "p counter", "p no_such", "frame select -r 1"),
    "__stages_MOD_descend": (
        *("source list -c 5", "source info", "up"),
        *("down", "p depth", "thread backtrace -s 2", "p here"),
    ),
    "MAIN__": ("source list -c 5", "source info", "down", "p rank", "p ranks", "frame variable --no-args"),
}
_CXX_GLOBALS = (
    *("table", "&table", "table.size_", "history", "history[0]", "grid", "census", "members", "greeting", "short_text"),
    *("&greeting", "corners", "couple", "triple", "perhaps", "shared", "*shared", "&adder"),
)
_CXX_QUALIFIED = (
    *("geometry::detail::v2::depth", "geometry::numbers", "geometry::points", "geometry::unit_circle"),
    *("geometry::current", "geometry::inline_count", "geometry::detail::depth"),
)
_CXX_QUALIFIED_NATIVE = (
    *("p geometry::numbers.count_", "p &geometry::numbers", "p *geometry::current", "p geometry::inline_count"),
    *("p (void *)geometry::current == &table", "p/x geometry::inline_count", "x/1dw &geometry::detail::v2::depth"),
    *("memory read -f d -s 4 -c 1 &geometry::inline_count", "expr geometry::detail::v2::depth + 1"),
    *(
        "expression -f x -- geometry::inline_count",
        "p geometry::detail::no_such_name",
        "p &geometry::detail::v2::depth",
    ),
    *("p sizeof(geometry::numbers)", "call geometry::inline_count * 2"),
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


def _below(frames: dict[str, tuple[str, ...]]) -> tuple[Query, ...]:
    return tuple(query for frame, commands in frames.items() for query in at(frame, *commands))


def _questions(frames: dict[str, tuple[str, ...]], names: Iterable[str], where: Iterable[str]) -> tuple[Query, ...]:
    queries = [*at("", "bt")]
    for frame, expressions in frames.items():
        native = _NATIVE[1:] if frame in UNSET else _NATIVE
        queries += at(frame, *native, *(f"p {expression}" for expression in expressions))
    for frame in where:
        queries += at(frame, *(f"p {name}" for name in names))
    return tuple(queries)


C = (
    *_questions(_C_FRAMES, _C_GLOBALS, ("checkpoint",)),
    *at("", *(f"p {one}" for one in _C_GLOBALS)),
    *at("checkpoint", *_C_NATIVE),
    *at("main", *_C_OUTER, *(f"p {one}" for one in _C_GLOBALS[:40:2])),
    *at("descend", *(f"p {one}" for one in _C_GLOBALS[1:40:2])),
    *at("visit", *_C_INNER),
    *_below(_C_BELOW),
)
CXX = (
    *_questions(_CXX_FRAMES, _CXX_GLOBALS, ("main",)),
    *at("main", *(f"{command} {one}" for one in _CXX_QUALIFIED for command in ("target variable", "p"))),
    *at("stages::checkpoint", *_CXX_QUALIFIED_NATIVE),
    *at("stages::checkpoint", *_CXX_NATIVE),
    *at("stages::Stage::run", *_CXX_RUN),
    *at("stages::DeepDriver::drive", *_CXX_DRIVE),
    *at("stages::start", *_CXX_START),
    *at("main", *_CXX_OUTER),
    *at("stages::Stage::run", *(f"p {one}" for one in _CXX_GLOBALS)),
    *at("stages::start", *(f"p {one}" for one in _CXX_GLOBALS)),
    *at("stages::DeepDriver::drive", *(f"target variable {one}" for one in _CXX_GLOBALS if one.isidentifier())),
    *_below(_CXX_BELOW),
)
FORTRAN = (
    *at("", "bt"),
    *(query for name, asked in _FORTRAN_FRAMES.items() for query in at(name, "frame info", "source list -c 3", *asked)),
    *_below(_FORTRAN_BELOW),
    *at("hold", *_FORTRAN_DATA),  # in a frame of C: in Fortran's LLDB evaluates nothing at all
)
PROGRAMS = (
    *(Program("cells", ("hold.c", "cells.c", "cells_main.c"), level, C) for level in ("-O0", "-O2")),
    Program("shapes", ("hold.c", "shapes.cpp", "shapes_main.cpp"), "-O0", CXX),
    *(Program("fields", ("hold.c", "fields.f90"), level, FORTRAN) for level in ("-O0", "-O2")),
)
