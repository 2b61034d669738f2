"""The full screen of `inspector watch`: six views of a job that are kept up to date, and the keys.

Takes looks as messages of a lookout's thread; draws the rows of tables.py. It reads no target. Texts are put in
as literal text, never as markup.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar, Optional

from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.coordinate import Coordinate
from textual.events import Mount
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from ..job.reading import Way
from ..output.report_text import job_summary, verdict_style
from ..terminal.text import harmless
from .lookout import Look, Lookout
from .tables import RANKS, VIEWS, Row, WatchTable, arranged, opened, sheet

WINDOWS = [(0, "-low"), (8, "-high")]  # from how many lines on; in a low one rows need the scroll bar's line
FIRST = "reading the variables"
KEYS_OF_ROWS = ("view", "sort", "reverse", "filter", "pause", "help")
HELP = f"""{", ".join(f"{number} {name}" for number, name in enumerate(VIEWS, 1))}: choose what is shown

s        sort by the next column
r        reverse the order
/        show only rows that hold a text; Enter keeps it, Escape shows all rows again
Enter    open a row: all of a rank, or all values of a variable; Escape goes back
p        pause, or go on
?        this help
Ctrl-L   paint the screen again
q        quit; the job goes on

Each look stops the job for milliseconds. The line at the bottom says when the last one was, and how long it took.
"""


class NewLook(Message):
    """The lookout's thread has seen the job."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look


class LookoutNotice(Message):
    """The lookout has something to say instead; `last`: it looks no more."""

    def __init__(self, sentence: str, last: bool) -> None:
        super().__init__()
        self.sentence = sentence
        self.last = last


class Opened(Screen[None]):
    """One row with all that is known of it, kept up to date too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,backspace", "app.pop_screen", "back"),
        Binding("q,ctrl+c", "app.quit", "quit"),
    ]

    def __init__(self, view: str, row: Row) -> None:
        super().__init__()
        self._view = view
        self._row = row

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        with VerticalScroll():
            yield Static("", id="lines", markup=False)
        yield Static("", id="moment", markup=False)
        yield Footer()

    def show(self, look: Look, moment: str) -> None:
        """Show a row's details again."""
        self.query_one("#lines", Static).update(Text("\n".join(opened(self._view, self._row, look))))
        self.tell(moment)

    def tell(self, moment: str) -> None:
        """Show a line at the bottom."""
        self.query_one("#moment", Static).update(Text(moment))

    def on_mount(self, event: Mount) -> None:
        """Fill the screen once it is there."""
        app = self.app
        if isinstance(app, Watch):
            self.show(app.look, app.moment())


class Help(Screen[None]):
    """What the keys do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,backspace,question_mark,h", "app.pop_screen", "back"),
        Binding("q,ctrl+c", "app.quit", "quit"),
    ]

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        with VerticalScroll():
            yield Static(HELP, markup=False)
        yield Footer()


class Watch(App[str]):
    """Shows looks until the user quits; returns the last sentence that was said, "" if there is none."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head, #verdict, #status, #moment { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #head { text-style: bold; }
    #filter { height: 1; border: none; padding: 0; }
    DataTable { height: 1fr; }
    .-low DataTable { scrollbar-size-horizontal: 0; }
    .-low #verdict { display: none; }
    """
    VERTICAL_BREAKPOINTS = WINDOWS
    BINDINGS: ClassVar[list[BindingType]] = [
        # With priority: keys that are pressed fast act in their order, the first letters of a filter are none of ours.
        *(Binding(str(number), f"view('{name}')", name, priority=True) for number, name in enumerate(VIEWS, 1)),
        Binding("s", "sort", "sort", priority=True),
        Binding("r", "reverse", "reverse", priority=True),
        Binding("slash", "filter", "filter", key_display="/", priority=True),
        Binding("escape", "clear", "all rows", show=False, priority=True),
        Binding("p", "pause", "pause", priority=True),
        Binding("question_mark,h", "help", "help", key_display="?", priority=True),
        Binding("enter", "keep", "keep the filter", priority=True),
        Binding("q", "quit", "quit"),
        Binding("ctrl+l", "repaint", "paint again", show=False, priority=True),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
    ]

    def __init__(self, first: Look, period: float, way: Way) -> None:
        """`first` has no variables' values: the next look begins as soon as it is drawn."""
        super().__init__()
        self.look = first
        self._before: Optional[Look] = None
        self._view = RANKS
        self._columns = dict.fromkeys(VIEWS, 0)  # each view keeps its own order
        self._down = dict.fromkeys(VIEWS, False)
        self._wanted = ""
        self._paused = False
        self._sentence = FIRST
        self._rows: Sequence[Row] = ()
        self._titles: list[tuple[str, int]] = []
        self._lookout = Lookout(first.job_pid, way, period, self._seen, self._say)

    def _seen(self, look: Look) -> None:
        self.post_message(NewLook(look))

    def _say(self, sentence: str, last: bool) -> None:
        self.post_message(LookoutNotice(sentence, last))

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static("", id="head", markup=False)
        yield Static("", id="verdict", markup=False)
        yield DataTable[Text](id="rows", cursor_type="row", zebra_stripes=True)
        yield Input(id="filter", placeholder="rows that hold ...", compact=True)
        yield Static("", id="status", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        self.animation_level = "none"
        self._draw()
        self._close_filter()
        self.call_after_refresh(self._lookout.start)

    def finish(self) -> None:
        """After the screen is the user's own again: end the reading."""
        self._lookout.stop()

    # ---- what comes in ----

    def on_new_look(self, message: NewLook) -> None:
        """Draw a new look."""
        if self._paused and self._before is not None:
            return  # a look that had begun before the pause, and not the first one with variables
        self._before, self.look = self.look, message.look
        self._sentence = ""
        self._draw()
        if isinstance(self.screen, Opened):
            self.screen.show(self.look, self.moment())

    def on_lookout_notice(self, message: LookoutNotice) -> None:
        """Show a sentence."""
        self._sentence = message.sentence
        self._draw_status()

    # ---- keys ----

    def action_repaint(self) -> None:
        """All of the screen, where something else has written over it."""
        self.screen.refresh(layout=True)
        for widget in self.screen.query("*"):
            widget.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> Optional[bool]:
        """Keys of the rows do nothing while one of them is open, and are letters while a filter is typed."""
        if action == "clear":
            return not isinstance(self.screen, (Opened, Help))
        if action == "keep":
            return isinstance(self.focused, Input)
        is_free = not isinstance(self.screen, (Opened, Help)) and not isinstance(self.focused, Input)
        return is_free or action not in KEYS_OF_ROWS

    def action_view(self, name: str) -> None:
        """Switch to a view."""
        self._view = name
        self._draw()

    def action_sort(self) -> None:
        """By the next column, ascending."""
        self._columns[self._view] = (self._columns[self._view] + 1) % len(self._sheet().columns)
        self._down[self._view] = False
        self._draw()

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self._down[self._view] = not self._down[self._view]
        self._draw()

    def action_filter(self) -> None:
        """Open the filter."""
        box = self.query_one("#filter", Input)
        box.display = True
        self.screen.set_focus(box)  # at once: what is typed next is for the box

    def action_clear(self) -> None:
        """Clear the filter."""
        box = self.query_one("#filter", Input)
        box.value = ""
        self._close_filter()

    def action_pause(self) -> None:
        """Pause, or go on."""
        self._paused = not self._paused
        self._lookout.pause(self._paused)
        self._draw_status()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Help())

    async def action_quit(self) -> None:
        """End the view."""
        self.exit(self._sentence)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Draw the rows that hold what is typed."""
        self._wanted = event.value
        self._draw()

    def action_keep(self) -> None:
        """Close the filter and keep it."""
        self._close_filter()

    def _close_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.display = bool(box.value)
        self.screen.set_focus(self.query_one(DataTable))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open a row's details."""
        if 0 <= event.cursor_row < len(self._rows):
            self.push_screen(Opened(self._view, self._rows[event.cursor_row]))

    # ---- drawing ----

    def _sheet(self) -> WatchTable:
        return sheet(self._view, self.look, self._before)

    def _draw(self) -> None:
        watch_table = self._sheet()
        column, down = self._columns[self._view], self._down[self._view]
        titles = [
            f"{name}{(' v' if down else ' ^') if number == column else ''}"
            for number, name in enumerate(watch_table.columns)
        ]
        table: DataTable[Text] = self.screen_stack[0].query_one("#rows", DataTable)
        rows = arranged(watch_table, column, down, self._wanted)
        columns = [(title, width(number, title, rows)) for number, title in enumerate(titles)]
        if columns == self._titles and _same_order(rows, self._rows):
            update(table, rows, self._rows)
        else:
            refill(table, columns, rows, self._rows)
        self._titles = columns
        self._rows = rows
        self.screen_stack[0].query_one("#head", Static).update(Text(harmless(job_summary(self.look.job))))
        headline = Text(harmless(self.look.verdict.headline), style=verdict_style(self.look.verdict))
        self.screen_stack[0].query_one("#verdict", Static).update(headline)
        self._draw_status()

    def _draw_status(self) -> None:
        self.screen_stack[0].query_one("#status", Static).update(Text(self._status()))
        if isinstance(self.screen, Opened):
            self.screen.tell(self.moment())

    def _status(self) -> str:
        if self._sentence:
            return self.moment()
        shown = f"{self._view}: {len(self._rows)} of {len(self._sheet().rows)} rows"
        shown += f" that hold {self._wanted!r}" if self._wanted else ""
        return f"{shown}; {self.moment()}"

    def moment(self) -> str:
        """When what is shown was read, and why it is not newer."""
        taken = time.strftime("%H:%M:%S", time.localtime(self.look.at))
        if self._sentence:
            return f"{harmless(self._sentence)}; shown is {taken}"
        return f"read at {taken} in {1000 * self.look.seconds:.0f} ms" + (", paused" if self._paused else "")


def _same_order(rows: Sequence[Row], before: Sequence[Row]) -> bool:
    return [row.name for row in rows] == [row_before.name for row_before in before]


def update(table: DataTable[Text], rows: Sequence[Row], before: Sequence[Row]) -> None:
    """Only the cells that are others now, so that a slow terminal has little to draw."""
    for number, (row, old) in enumerate(zip(rows, before)):
        for column, (cell, shown) in enumerate(zip(row.cells, old.cells)):
            if cell.text != shown.text:
                table.update_cell_at(Coordinate(number, column), Text(cell.text))


def width(column: int, title: str, rows: Sequence[Row]) -> int:
    """Columns of the terminal that a column of ours takes."""
    return max(cell_len(title), max((cell_len(row.cells[column].text) for row in rows), default=0))


def refill(
    table: DataTable[Text], titles: Sequence[tuple[str, int]], rows: Sequence[Row], before: Sequence[Row]
) -> None:
    """All rows again; the cursor stays on the row that it is on."""
    place = table.cursor_row
    chosen = before[place].name if 0 <= place < len(before) else ""
    table.clear(columns=True)
    for title, columns in titles:
        table.add_column(Text(title), width=columns)
    for row in rows:
        table.add_row(*(Text(cell.text) for cell in row.cells))
    names = [row.name for row in rows]
    table.move_cursor(row=names.index(chosen) if chosen in names else 0)
