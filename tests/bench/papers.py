"""The figures of the papers that describe the methods, measured here: a table, and a picture beside each.

Takes `CHARM_HOME` for those on stock AMPI; without it they are not run, and the table says so. Times are processor time
unless a row says that they are on the clock. docs/references.md has the papers.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Optional, TypeVar, Union

from tests.bench import methods
from tests.bench.plot import Points, plot
from tests.bench.result import Picture, Result
from tests.methods.matrix import METHODS
from tests.support.charm import jobs as charm
from tests.support.running import built

SOURCE = Path(__file__).resolve().parent / "programs" / "papers.c"
SWITCHING = tuple(method for method in METHODS if method not in methods.OWN_THREADS)
GLOBALS = (1, 10, 100, 1000)
START_RANKS = (1, 2, 4, 8, 12, 64, 256)
MOST_RANKS = {"pip": 12, "pipthread": 12, "pipprocess": 12, "fs": 64, "tpsl": 64}  # of START_RANKS
MEGABYTES = (1, 3, 10, 30, 100)
RATIOS = (1, 2, 4, 8, 16)
EVERY = 2  # steps between two migrations of the miniature
MANY = tuple(1000 << power for power in range(8))
MANY_METHODS = ("none", "pie", "tls-word", "swap")
BEST_OF = 3
AMPI_METHODS = charm.METHODS
GLOBALS_METHODS = ("none", "tls", "swap")  # the paper's own three, but for refactoring
CODE = 14  # MB that the paper's program sends beside its data under PIEglobals (2022, section 4.4)
AMPI_RANKS = (1, 2, 4, 8)
SMALL = 64  # bytes of private variables
WORD = 8  # AMPI's Swapglobals aligns no variable to more
X = TypeVar("X", bound=Union[int, str])
WITHIN = 12.0  # ns: "all methods measured are within 12 nanoseconds of the baseline" (2022, section 4.2)
PATIENCE = 120  # seconds of one run


@dataclass(frozen=True)
class Figure:
    """A picture and its table: `series` by name, `dashed` what it is held against."""

    file: str
    title: str
    x_name: str
    y_name: str
    unit: str
    series: Mapping[str, Points]
    dashed: Mapping[str, Points] = field(default_factory=dict)

    def table(self) -> str:
        """A row for each series, a column for each place on the axis; what was not measured is empty."""
        places = list(dict.fromkeys(x for points in self.series.values() for x, _ in points))
        ordered = places if any(isinstance(x, str) for x in places) else sorted(places, key=float)
        lines = [
            [f"{self.unit}; {self.x_name}:", *(x if isinstance(x, str) else f"{x:,}" for x in ordered)],
            ["---", *("--:" for _ in ordered)],
            *([name, *(f"{dict(points)[x]:.3g}" if x in dict(points) else "" for x in ordered)]
              for name, points in self.series.items()),
        ]  # fmt: skip
        return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)

    def picture(self) -> Picture:
        drawn = {name: points for name, points in self.series.items() if points}
        content = plot(self.title, self.x_name, self.y_name, drawn, self.dashed)
        return Picture(self.title, self.file, content, self.table())


def run() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        figures = [figure for make in FIGURES for figure in make(bench)]
    ampi = "" if charm.AMPICC else " Nothing was run on stock AMPI: CHARM_HOME is not set."
    return Result(
        "The papers' figures",
        "Processor time, unless it says that it is on the clock; the best of several rounds. What the papers found, "
        f"and why a shape differs here, is on the [page about them](figures.md).{ampi}"
        + "".join(f"\n\nNot measured: {note}" for note in bench.notes),
        (),
        tuple(figure.picture() for figure in figures),
    )


# ---- running ----


class Failed(Exception):  # noqa: N818 - it reads as what it says
    """A run that ended with a status, or not in time; its text says why."""


class Bench:
    """Builds and runs papers.c for the embedded runtime and for stock AMPI. `notes`: what could not be measured."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes: list[str] = []
        self.built = lru_cache(maxsize=None)(self._built)
        self.built_for_ampi = lru_cache(maxsize=None)(self._built_for_ampi)

    def points(self, name: str, places: Iterable[X], measure: Callable[[X], float]) -> list[tuple[X, float]]:
        """The best of some runs for each place on the axis, up to the first that fails."""
        found: list[tuple[X, float]] = []
        for place in places:
            value = self._best(name, place, measure)
            if value is not None:
                found.append((place, value))
            elif not isinstance(place, str):
                break
        return found

    def _best(self, name: str, place: X, measure: Callable[[X], float]) -> Optional[float]:
        try:
            return min(measure(place) for _ in range(BEST_OF))
        except Failed as failure:
            self.notes.append(f"{name} with {place}: `{failure}`.")
            return None

    def _built(self, method: str, count: int, size: int) -> Path:
        program = self.folder / f"papers.{method}.{count}.{size}"
        private = ["-DPRIVATE=__thread"] if method in methods.THREAD_LOCAL else []
        moves = ["-DCAN_MOVE"] if method in ("pie", "struct") else []
        more = [f'-DMORE="{self.declarations(count)}"'] if count else []
        checked([built("rankcc"), f"--method={method}", "-O2", *private, *moves, *more, f"-DBYTES={size}", SOURCE,
                 "-o", program])  # fmt: skip
        return program

    def declarations(self, count: int) -> Path:
        """A file that declares so many globals, and uses each."""
        path = self.folder / f"globals{count}.h"
        names = [f"more{number}" for number in range(count)]
        lines = [*(f"PRIVATE volatile int {name};" for name in names), "static void touch(void) {"]
        lines += [*(f"    {name}++;" for name in names), "}", "#define TOUCH touch();", ""]
        path.write_text("\n".join(lines))
        return path

    def _built_for_ampi(self, method: str, size: int, count: int = 0) -> Path:
        folder = self.folder / f"ampi.{method}.{size}.{count}"
        folder.mkdir()
        more = [f'-DMORE="{self.declarations(count)}"'] if count else []
        charm.build(folder, method, "c", source=SOURCE.read_text(), more=("-O2", f"-DBYTES={size}", *more))
        return folder

    def embedded(self, method: str, ranks: int, *words: object, count: int = 0, size: int = SMALL) -> float:
        """What rank 0 prints; the last of the words is the program's, the others are rankrun's."""
        *options, what = words
        program = [self.built(method, count, size), *str(what).split()]
        return result_of([built("rankrun"), "-n", ranks, "--method", method, *options, *program])

    def ampi(self, method: str, ranks: int, what: str, size: int = SMALL, processes: int = 1, count: int = 0) -> float:
        """Likewise; with several processes ranks go to the next one where the program lets them."""
        launch = ["./charmrun", f"+p{processes}", "++local"] if processes > 1 else []
        last = ["+balancer", "RotateLB"] if processes > 1 else []
        return result_of([*launch, "./prog", f"+vp{ranks}", what, *last], self.built_for_ampi(method, size, count))


def checked(command: Sequence[object], folder: Optional[Path] = None) -> str:
    """What a command prints; raises `Failed`."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"it took over {PATIENCE} s") from error
    if done.returncode:
        raise Failed(next(iter((done.stderr or done.stdout).strip().splitlines()), f"status {done.returncode}"))
    return done.stdout


def result_of(command: Sequence[object], folder: Optional[Path] = None) -> float:
    results = [float(line.split()[1]) for line in checked(command, folder).splitlines() if line.startswith("RESULT ")]
    if not results:
        raise Failed("it printed no result")
    return results[0]


def processor_milliseconds(command: Sequence[object], folder: Optional[Path] = None) -> float:
    """Of user and kernel, of all processes of a run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    checked(command, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


# ---- the figures ----


def switch_by_globals(bench: Bench) -> Iterator[Figure]:
    """2011, figure 5."""

    def measured(method: str) -> Points:
        return bench.points(method, GLOBALS, lambda count: bench.embedded(method, 2, "barrier", count=count))

    def on_ampi(method: str) -> Points:
        return bench.points(
            f"AMPI, {method}", GLOBALS, lambda count: bench.ampi(method, 2, "barrier", size=WORD, count=count)
        )

    words = "globals", "ns for each rank and turn", "ns"
    series = {method: measured(method) for method in SWITCHING}
    yield Figure(
        "figure-switch-globals.svg", "MPI_Barrier on two ranks, by number of globals (2011, figure 5)", *words, series,
        shape_by_globals(series["tls-word"], series["swap"]),
    )  # fmt: skip
    if charm.AMPICC:
        series = {f"stock AMPI, {method}": on_ampi(method) for method in GLOBALS_METHODS}
        yield Figure(
            "figure-switch-globals-ampi.svg", "MPI_Barrier on two ranks, by number of globals, stock AMPI", *words,
            series, shape_by_globals(series["stock AMPI, tls"], series["stock AMPI, swap"]),
        )  # fmt: skip


def shape_by_globals(constant: Points, growing: Points) -> dict[str, Points]:
    """What the paper's text says of its figure, which has no numbers: laid through what was measured here."""
    if not constant or len(growing) < len(GLOBALS):
        return {}
    (_, least), (most_globals, most) = growing[0], growing[-1]
    each = (most - least) / float(most_globals)
    return {
        "constant (the paper's TLSglobals)": [(count, constant[0][1]) for count in GLOBALS],
        "in proportion (the paper's Swapglobals)": [(count, least + each * count) for count in GLOBALS],
    }


def switch_by_method(bench: Bench) -> Iterator[Figure]:
    """2022, figure 6, on the embedded runtime and on stock AMPI."""
    points = bench.points("a switch", SWITCHING, lambda method: bench.embedded(method, 2, "switch"))
    series: dict[str, Points] = {
        "embedded runtime": points,
        "embedded runtime, each rank in a loop of its own": bench.points(
            "a switch", SWITCHING, lambda method: bench.embedded(method, 2, "apart")
        ),
    }
    if charm.AMPICC:
        series["stock AMPI"] = bench.points(
            "a switch on AMPI", AMPI_METHODS, lambda method: bench.ampi(method, 2, "switch")
        )
    most = dict(points)["none"] + WITHIN
    yield Figure(
        "figure-switch-method.svg", "A switch between two ranks (2022, figure 6)", "method", "ns", "ns", series,
        {"embedded, none + 12 ns (the paper's most)": [(0, most), (len(points) - 1, most)]},
    )  # fmt: skip


def start_up(bench: Bench) -> Iterator[Figure]:
    """2022, figure 5, for more numbers of ranks."""

    def embedded(method: str) -> Points:
        numbers = [ranks for ranks in START_RANKS if ranks <= MOST_RANKS.get(method, max(START_RANKS))]
        command = [built("rankrun"), "--method", method]
        program = bench.built(method, 0, SMALL)
        return bench.points(method, numbers, lambda ranks: processor_milliseconds([*command, "-n", ranks, program]))

    def ampi(method: str) -> Points:
        folder = bench.built_for_ampi(method, SMALL)
        return bench.points(
            f"AMPI, {method}", AMPI_RANKS, lambda ranks: processor_milliseconds(["./prog", f"+vp{ranks}"], folder)
        )

    def most(series: Mapping[str, Points]) -> dict[str, Points]:
        return {"none + 9 % (the paper's most)": [(x, y * 1.09) for x, y in series["none"]]}

    names = "ranks in one process", "ms of processor time", "ms"
    series = {method: embedded(method) for method in METHODS}
    yield Figure(
        "figure-start.svg", "Start and end (2022, figure 5), embedded runtime", *names, series, most(series)
    )  # fmt: skip
    if charm.AMPICC:
        series = {method: ampi(method) for method in AMPI_METHODS}
        yield Figure(
            "figure-start-ampi.svg", "Start and end (2022, figure 5), stock AMPI", *names, series, most(series)
        )  # fmt: skip


def access(bench: Bench) -> Iterator[Figure]:
    """2022, figure 7: as the benchmark of methods measures it, of one rank."""
    programs = {method: methods.compiled(method, "methods.c", bench.folder) for method in METHODS}
    points = bench.points(
        "the loop", METHODS, lambda method: float(methods.rankrun(method, 1, programs[method], "jacobi"))
    )
    base = dict(points)["none"]
    yield Figure(
        "figure-access.svg", "A loop whose every variable is private (2022, figure 7)", "method", "relative to none",
        "x", {"embedded runtime": [(method, time / base) for method, time in points]},
        {"no overhead (the paper's)": [(0, 1.0), (len(points) - 1, 1.0)]},
    )  # fmt: skip


def migration(bench: Bench) -> Iterator[Figure]:
    """2022, figure 8."""

    def embedded(mode: str) -> Points:
        def measured(megabytes: int) -> float:
            return bench.embedded("pie", 2, "--procs", 2, "--migrate", mode, "migrate", size=megabytes << 20) * 1e-6

        return bench.points(f"a migration, {mode}", MEGABYTES, measured)

    def ampi(method: str) -> Points:
        return bench.points(
            f"a migration on AMPI, {method}",
            MEGABYTES,
            lambda megabytes: bench.ampi(method, 2, "migrate", megabytes << 20, 2) * 1e-6,
        )

    series = {f"embedded, pie, {mode}": embedded(mode) for mode in ("whole", "lean")}
    if charm.AMPICC:
        series.update({f"stock AMPI, {method}": ampi(method) for method in ("pie", "tls")})
    (last, most) = next(iter(series.values()))[-1] if not charm.AMPICC else series["stock AMPI, tls"][-1]
    each = most / float(last)
    yield Figure(
        "figure-migration.svg", "A migration, on the clock (2022, figure 8)", "MB of private variables", "ms", "ms",
        series, {
            "in proportion (the paper's TLSglobals)": [(size, each * size) for size in MEGABYTES],
            "and 14 MB of code (the paper's PIEglobals)": [(size, each * (size + CODE)) for size in MEGABYTES],
        },
    )  # fmt: skip


def balance(bench: Bench) -> Iterator[Figure]:
    """2022, table 2, in miniature: two processes, a front that moves over a field."""

    def seconds(ranks: int, every: int) -> list[tuple[int, float]]:
        return bench.points(
            "the miniature", [ranks], lambda ranks: bench.embedded("pie", ranks, "--procs", 2, f"balance {every}")
        )

    base = seconds(2, 0)
    times = [point for ratio in RATIOS for point in seconds(2 * ratio, EVERY)]
    points = [(ranks // 2, max(100 * (base[0][1] / time - 1), 0.0)) for ranks, time in times if base]
    yield Figure(
        "figure-balance.svg", "Speedup by load balancing on two processes (2022, table 2)", "ranks for each process",
        "% over one rank for each process", "%", {"embedded, pie": points},
        {"ADCIRC on 2 cores, its best ratio (the paper's)": [(min(RATIOS), 59.0), (max(RATIOS), 59.0)]},
    )  # fmt: skip


def many_ranks(bench: Bench) -> Iterator[Figure]:
    """2011, figures 7 and 8: until the machine has no room for more."""

    def measured(method: str) -> Points:
        words = ("--stack-size", "64K", "--range-size", "1M", "ring")
        return bench.points(f"{method}: ranks", MANY, lambda ranks: bench.embedded(method, ranks, *words) * 1e-6)

    series = {method: measured(method) for method in MANY_METHODS}
    each = series["none"][0][1] / MANY[0]
    yield Figure(
        "figure-many.svg", "A message through all ranks of one process (2011, figure 7)", "ranks", "ms", "ms", series,
        {"in proportion (the paper's, all methods)": [(ranks, each * ranks) for ranks in (MANY[0], MANY[5])]},
    )  # fmt: skip


FIGURES: tuple[Callable[[Bench], Iterator[Figure]], ...] = (
    switch_by_globals, switch_by_method, start_up, access, migration, balance, many_ranks,
)  # fmt: skip
