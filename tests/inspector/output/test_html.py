"""`inspector report --html` in a real browser: tables are searched and sorted, and no script of the target runs."""

from __future__ import annotations

import html
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.analysis.payload import CATEGORIES, STACK_UNKNOWN, Payload
from inspector.output.html import HATCHED, MOST_BARS, flame, memory_bars, page_bars
from tests.support.inspector import browser
from tests.support.running import StartJob, built

HOSTILE = "<img src=x onerror=alert(1)>"
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
char text[] = "</script><script>document.title='owned'</script>";
int alpha, beta_value, gamma_value;
double large[64];
static void inner(int rank) {
    int nothing;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    alpha = rank;
    beta_value = 7;
    text[0] = '<';
    inner(rank);
    return gamma_value + (int)large[argc];
}
"""


def dom(file: Path, fragment: str, folder: Path) -> str:
    """The document after its script has run, as the browser writes it."""
    command = [
        browser.program(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
    ]
    command += ["--disable-dev-shm-usage", "--virtual-time-budget=3000", "--dump-dom", f"file://{file}#{fragment}"]
    with browser.own_temporary_files() as environment:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert "</html>" in done.stdout, done.stderr[-2000:]
    return done.stdout


def rows(document: str, table: str) -> list[list[str]]:
    """The cells of the rows that are shown."""
    (body,) = re.findall(rf'<table id="{table}">.*?<tbody>(.*?)</tbody>', document, re.DOTALL)
    found = []
    for attributes, row in re.findall(r"<tr([^>]*)>(.*?)</tr>", body, re.DOTALL):
        if "hidden" not in attributes:
            found.append([html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)])
    return found


def sizes_of(document: str) -> list[int]:
    """The sizes of globals in the order of their rows, in bytes."""
    return [int(one) for one in re.findall(r'<td class="number" data-key="(\d+)">', document)]


@pytest.fixture
def report(start_job: StartJob, tmp_path: Path) -> Path:
    folder = tmp_path / HOSTILE
    folder.mkdir()
    source, program = folder / f"{HOSTILE}.c", tmp_path / "program"
    source.write_text(PROGRAM)
    subprocess.run([str(built("rankcc")), "-g", str(source), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", 4, program)
    job.wait_until_still()
    file = tmp_path / "report.html"
    command = [str(built("inspector")), "report", str(job.pid), "--html", str(file)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return file


def test_in_a_browser(report: Path, tmp_path: Path) -> None:
    document = dom(report, "", tmp_path)
    shown = {row[0]: row for row in rows(document, "globals")}
    assert {"alpha", "beta_value", "gamma_value", "large", "text"} <= set(shown)
    assert "<title>owned" not in document and "onerror=alert" not in re.sub(r"&lt;.*?&gt;", "", document)
    assert HOSTILE in shown["alpha"][1]  # literally
    assert "<script>document.title='owned'</script>" in shown["text"][6]
    assert len(rows(document, "ranks")) == 4
    for function in ("main", "inner", "MPI_Recv"):
        assert re.search(rf"<title>{function}[^<]*ranks 0-3</title>", document)
    assert document.count("<rect") >= 15 and re.search(r"<title>rank[^<]*, heap used: [^<]*</title>", document)
    assert "Without the unused part of their stacks, 8.4 MB of each." in document


def test_search_and_sort(report: Path, tmp_path: Path) -> None:
    found = rows(dom(report, "globals=_value", tmp_path), "globals")
    assert sorted(row[0] for row in found) == ["beta_value", "gamma_value"]
    assert rows(dom(report, "globals=no%20such%20thing", tmp_path), "globals") == []
    sizes = sizes_of(dom(report, "globals:3", tmp_path))
    assert sizes == sorted(sizes) and len(set(sizes)) > 2
    down = sizes_of(dom(report, "globals:3d", tmp_path))
    assert down == sorted(sizes, reverse=True)


def test_nothing_is_loaded_from_elsewhere(report: Path) -> None:
    text = report.read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:|//)""", text)
    assert "default-src 'none'" in text


def test_a_file_that_cant_be_written(report: Path, start_job: StartJob, tmp_path: Path) -> None:
    job = start_job(built("rankrun"), "-n", 2, tmp_path / "program")
    job.wait_for("ready")
    command = [str(built("inspector")), "report", str(job.pid), "--html", str(tmp_path / "nowhere" / "x.html")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "can't be written" in done.stderr and "Traceback" not in done.stderr
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        command[-1] = str(tmp_path / name)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and f"{name} can't be written, it is not a regular file" in done.stderr
        assert done.stderr.count("\n") == 1
    assert (tmp_path / "pipe").is_fifo()
    assert not list(tmp_path.glob(".*"))


# how many lines a cell of the table of ranks takes at most that holds a single word
LINES = """Math.max(...Array.from(document.querySelectorAll("#ranks td"))
    .filter(one => /^\\S+$/.test(one.textContent))
    .map(one => { const all = document.createRange(); all.selectNodeContents(one); return all; })
    .map(one => one.getClientRects().length))
"""


# the sizes of the rows of globals that are shown, in bytes
SIZES = """[...document.querySelectorAll('#globals tbody tr:not([hidden])')]
    .map(row => Number(row.cells[3].dataset.key))"""


def check_keys(page: browser.Page) -> None:
    """Without a mouse: the box and all heads of a table are reached one after the other, and a head sorts."""
    page.value("document.querySelector('input[data-table=globals]').focus()")
    for _ in range(4):
        page.press("Tab", 9)
    assert page.value("document.activeElement.textContent") == "size"
    for order in (1, -1):
        page.press("Enter", 13)
        sizes = page.value(SIZES)
        assert sizes == sorted(sizes)[::order] and len(set(sizes)) > 2
        told = page.value("document.activeElement.getAttribute('aria-sort')")
        assert told == {1: "ascending", -1: "descending"}[order]


def check_looks(page: browser.Page) -> None:
    """In a narrow window and a wide one, light and dark: no short word breaks, and only tables go sideways."""
    colours = set()
    for width, scheme in ((400, "light"), (1300, "dark")):
        page.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        assert page.value("document.documentElement.scrollWidth") <= width
        assert page.value(LINES) == 1, "a word is broken"
        letters = "document.querySelector('svg text').getBoundingClientRect().height"
        assert page.value(letters) >= 9, "too small to be read"
        assert page.value("getComputedStyle(document.querySelector('#globals th:nth-child(4)')).textAlign") == "right"
        colours.add(page.value("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2


def test_clicks_and_keys(report: Path, tmp_path: Path) -> None:
    """A head is clicked to sort, a box is typed into to search; what comes from the target stays text meanwhile."""
    shown = "[...document.querySelectorAll('#globals tbody tr:not([hidden])')].map(row => row.cells[{}].textContent)"
    with browser.page(tmp_path) as page:
        page.open(report.as_uri())
        assert sorted(page.value(shown.format(0))) == sorted(row[0] for row in rows(report.read_text(), "globals"))
        page.click("#globals th:nth-child(4)")
        sizes = page.value(SIZES)
        assert sizes == sorted(sizes) and len(set(sizes)) > 2
        page.click("#globals th:nth-child(4)")
        assert page.value(SIZES) == sorted(sizes, reverse=True)
        page.click("#globals th:nth-child(1)")
        check_keys(page)
        page.click("input[data-table=globals]")
        page.type("_VALUE")
        assert sorted(page.value(shown.format(0))) == ["beta_value", "gamma_value"]
        assert "globals=_VALUE" in page.value("location.hash")
        for _ in range(len("_VALUE")):
            page.press("Backspace", 8)
        assert len(page.value(shown.format(0))) > 2
        page.type("<img")
        assert set(page.value(shown.format(0))) >= {"alpha", "beta_value", "text"}, "the folder's name is searched too"
        assert page.value("document.title") != "owned" and page.value("document.querySelectorAll('img').length") == 0
        assert page.value("document.scripts.length") == 1
        asked = [
            event
            for event in page.events
            if event["method"] in ("Page.javascriptDialogOpening", "Runtime.exceptionThrown")
        ]
        assert asked == []
        check_looks(page)  # last of all: a click may meet a page that has not got its size yet


# By function: where its first box in the picture of the stacks begins, how wide it is, and whether it is shown.
BOXES = """Object.fromEntries([...document.querySelectorAll('#stacks g')].reverse().map(box => {
    const rect = box.querySelector('rect');
    const name = box.querySelector('title').textContent.split(' ')[0];
    return [name, [+rect.getAttribute('x'), +rect.getAttribute('width'), box.style.display !== 'none']];
}))"""


def test_a_click_on_a_box_zooms_in(start_job: StartJob, tmp_path: Path) -> None:
    """Its callers stay, what is beside it goes; Escape shows all again, and the contents lead to every part."""
    file = html_of(start_job, tmp_path, FORKED)
    with browser.page(tmp_path) as page:
        page.open(file.as_uri())
        whole = page.value(BOXES)
        assert whole["main"] == [0, 1000, True] and whole["left"][1] == pytest.approx(250)
        page.click("#stacks g[data-label^=left]")
        zoomed = page.value(BOXES)
        assert zoomed["main"] == zoomed["left"] == [0, 1000, True] and not zoomed["right"][2]
        label = "[...document.querySelectorAll('#stacks g')].find(one => one.dataset.label.startsWith('left'))"
        assert page.value(f"{label}.querySelector('text').textContent").startswith("left forked.c:")
        page.press("Escape", 27)
        assert page.value(BOXES) == whole
        parts = page.value("[...document.querySelectorAll('nav a')].map(one => one.getAttribute('href'))")
        assert len(parts) == 8 and all(page.value(f"document.querySelector('{part}') !== null") for part in parts)
        assert page.value("document.querySelectorAll('#waits .node').length") == 4
        assert page.value("document.querySelectorAll('#waits path[marker-end]').length") == 3


FORKED = """
#include <mpi.h>
#include <stdio.h>
static void receive(int from) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
__attribute__((noinline)) static void left(void) {
    receive(1);
}
__attribute__((noinline)) static void right(int rank) {
    receive(rank % 3 + 1);
}
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    if (rank == 0)
        left();
    else if (rank < 3)
        right(rank);
    else
        MPI_Recv(&rank, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
"""


def html_of(start_job: StartJob, folder: Path, source: str, ranks: int = 4) -> Path:
    """The report of a program whose ranks all wait."""
    code, program, file = folder / "forked.c", folder / "forked", folder / "forked.html"
    code.write_text(source)
    subprocess.run([str(built("rankcc")), "-g", "-O0", str(code), "-o", str(program)], check=True, timeout=60)
    job = start_job(built("rankrun"), "-n", ranks, program)
    job.wait_until_still()
    command = [str(built("inspector")), "report", str(job.pid), "--html", str(file)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return file


def test_a_thousand_ranks_are_less_than_a_megabyte(start_job: StartJob, tmp_path: Path) -> None:
    assert html_of(start_job, tmp_path, FORKED, 1000).stat().st_size < 1_000_000


def test_on_a_telephone(report: Path, tmp_path: Path) -> None:
    """It is as wide as the screen; an address that somebody mistyped leads to the page."""
    with browser.page(tmp_path) as page:
        page.open(f"{report.as_uri()}#globals=%,ranks:99,globals:x")
        page.ask("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=3, mobile=True)
        page.ask("Page.reload")
        page.ask("Runtime.evaluate", expression=browser.PAINTED, awaitPromise=True)
        assert page.value("window.innerWidth") == 390 and page.value("document.documentElement.scrollWidth") == 390
        assert page.value("document.querySelector('input[data-table=globals]').value") == "%"
        bars = "Array.from(document.querySelectorAll('.bar svg'), (bar) => bar.getBoundingClientRect().right)"
        assert 200 < page.value(f"Math.max(...{bars})") <= 390  # none is cut off: it would show other parts than it has
        assert not [event for event in page.events if event["method"] == "Runtime.exceptionThrown"]


def payload(rank: int, **sizes: int) -> Payload:
    return replace(Payload(rank, *(0 for _ in CATEGORIES)), **sizes)  # type: ignore[arg-type]


def test_ranks_with_the_same_sizes_have_one_bar() -> None:
    same = [payload(rank, code=100, stack_unused=1 << 23) for rank in range(0, 1000, 2)]
    others = [payload(rank, code=300, stack_unused=1 << 22) for rank in range(1, 200)]
    bars = memory_bars([*same, *others])
    assert [row.label for row in bars.rows] == ["500 ranks", "ranks 1-199"] and bars.left == 0
    few, many = bars.rows[0].parts[0], bars.rows[1].parts[0]
    assert few.title.startswith("ranks 0,2,4") and few.title.endswith("code: 100 B each")
    assert many.width == pytest.approx(3 * few.width, abs=0.02)
    assert "4.2 MB to 8.4 MB of each" in bars.caption
    assert memory_bars([payload(rank, code=rank) for rank in range(1000)]).left == 1000 - MOST_BARS


def test_a_stack_of_unknown_use_is_hatched_and_outside_of_the_scale() -> None:
    """It says how large the stack is at most, and does not make all other bars narrow."""
    payloads = [payload(rank, code=100, stack_used=50) for rank in range(3)]
    unknown = replace(payload(3, code=100, stack_used=8 << 20), notes=(f"{STACK_UNKNOWN}, all of it: it runs",))
    bars = memory_bars([*payloads, unknown])
    widths = {row.label: [part.width for part in row.parts if part.width] for row in bars.rows}
    assert sum(widths["ranks 0-2"]) > 800 and widths["rank 3"][0] == widths["ranks 0-2"][0]
    hatched = bars.rows[1].parts[-1]
    assert hatched.colour == HATCHED and hatched.title == ("rank 3, stack: 8.4 MB, how much of it is used is unknown")
    assert "Hatched" in bars.caption and "Hatched" not in memory_bars(payloads).caption


def test_pictures_of_nothing_say_why() -> None:
    assert memory_bars([]).caption == "No rank's image is in what was read." and not memory_bars([]).rows
    assert flame({}, [0, 1]).caption == "Of ranks 0-1 no stack could be read: `inspector stacks` says why."
    assert page_bars([]).caption == "No rank's pages were compared."
