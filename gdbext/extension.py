"""Switches the extension on: makes its `GdbDebugger`, binds commands and functions, and follows GDB's events.

Takes GDB's events; after every stop the selected rank is the one that runs on the stopped thread.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Optional

import gdb

from gdbext.breakpoints.followed_breakpoints import catches_in_code, follows
from gdbext.breakpoints.follower_breakpoint import Follower
from gdbext.breakpoints.lifecycle import Breakpoints
from gdbext.breakpoints.rank_events import RankEvents
from gdbext.commands import bind, functions, info_symbol, rank_break, rank_watch, refused_commands
from gdbext.gdb_api import hooks, host_charset, skipped_inline_frames
from gdbext.gdb_api.breakpoint_locations import Calls, forget_hit, has_silent_commands, hide_own
from gdbext.gdb_api.event_handlers import connect
from gdbext.gdb_api.front_end import is_batch
from gdbext.gdb_api.hide_own_events import hide_own_events
from gdbext.gdb_api.libraries.auto_solib_add_off import UnreadLibraries
from gdbext.gdb_api.momentary_breakpoints import InlineFinish, Resumed
from gdbext.gdb_api.posted import post
from gdbext.gdb_api.run_before_users_commands import UsersCommands, output_of
from gdbext.gdb_api.run_commands import uninterrupted, warnings
from gdbext.gdb_api.skipped_inline_frames import PcWrite
from gdbext.gdb_api.target import path_in_target
from gdbext.selection import down_and_thread
from gdbext.selection.debugger import GdbDebugger
from gdbext.selection.selection import switch_to_thread_of
from gdbext.symbols.focus import is_of_new_program
from gdbext.symbols.fortran_under_smpimain import speak_its_language
from gdbext.watchpoints.remapped_data import RemappedWatchpoint

SETTLE = "maintenance ranklens-settle"
SETTLE_DPRINTF = "maintenance ranklens-settle-dprintf"
SETTLE_PROGRAM = "maintenance ranklens-settle-program"
BEFORE_RUN = "maintenance ranklens-before-run"
MAKING = ("break", "tbreak", "hbreak", "thbreak", "rbreak", "watch", "rwatch", "awatch")
CHANGING = ("enable", "disable", "delete", "clear", "condition")
ADDING = ("add-inferior", "clone-inferior")
AFTER_COMMANDS = (
    *(f"hookpost-{command}" for command in MAKING + CHANGING + ADDING),
    "enable hookpost-once",
    "enable hookpost-count",
)

_extension: Optional[Extension] = None


class Extension:
    """Everything that the extension keeps in GDB, and what it does at GDB's events."""

    def __init__(self) -> None:
        host_charset.bind()
        hide_own()
        trust_own_script()
        self.debugger = GdbDebugger()
        self._changes = self.debugger.watches.changes
        bind.bind(self.debugger)
        rank_break.bind(self.debugger)
        rank_watch.bind(self.debugger)
        self.breakpoints = Breakpoints(self.debugger, RankEvents())
        self._settles_soon = self._is_ending = False
        functions.bind(self.debugger)
        refused_commands.bind(self.debugger, self.breakpoints.watch_step)
        down_and_thread.bind(self.debugger, self._show, self._restarted)
        info_symbol.bind(self.debugger)
        self._unread_libraries = UnreadLibraries()
        hooks.Called(SETTLE, self._settle)
        hooks.Called(SETTLE_DPRINTF, self._dprintf_was_made)
        hooks.Called(SETTLE_PROGRAM, self.debugger.inferiors.settle)
        hooks.define(*({hook: SETTLE} for hook in AFTER_COMMANDS), {"hookpost-dprintf": SETTLE_DPRINTF})
        hooks.define({"hookpost-file": SETTLE_PROGRAM})
        hooks.Called(BEFORE_RUN, self._before_run)
        hooks.define(*({f"hook-{command}": BEFORE_RUN} for command in ("run", "start", "starti")))
        events = gdb.events
        connect(events.stop, self._stopped)
        connect(events.cont, self._resumed)
        connect(events.inferior_call, self._called)
        connect(events.exited, self._ended)
        connect(events.register_changed, self._register_changed)
        connect(events.memory_changed, lambda _: self._changes.look())
        connect(events.new_inferior, lambda _: self._added())
        connect(events.inferior_deleted, self._removed)
        connect(events.new_objfile, self._loaded)
        connect(events.breakpoint_created, self._breakpoint_changed)
        connect(events.breakpoint_modified, self._breakpoint_changed)
        connect(events.breakpoint_deleted, self._breakpoint_deleted)
        connect(events.before_prompt, self._before_prompt)
        connect(events.gdb_exiting, self._ends)
        hide_own_events()
        self.breakpoints.watch_events()
        hooks.look_for_program()

    def begin(self) -> None:
        """Select the rank that runs on the thread, if there is a process already; else prepare for one."""
        with warnings("GDB reads conditions in another language than the program's"):
            self.debugger.state().focus.language_until_then = speak_its_language()
        if gdb.current_objfile() is None:  # else GDB is in the middle of loading libraries, and a stop comes afterwards
            with warnings("no rank is selected"):
                if self.debugger.follow():
                    self._show()

    def _stopped(self, event: Any) -> None:
        stopped_at = getattr(event, "breakpoints", ())
        UsersCommands.begin(stopped_at)
        try:
            self._has_stopped(event, stopped_at)
        finally:
            UsersCommands.end()

    def _has_stopped(self, event: Any, stopped_at: Sequence[gdb.Breakpoint]) -> None:
        skipped_inline_frames.note_stop()
        hooks.look_for_program()
        if not UsersCommands.wait:  # else it is done at the prompt
            self.debugger.inferiors.give_back_libraries()
        self._unread_libraries.settle()  # whose setting is the user's, and comes last
        self.debugger.inferiors.has_run()
        self._settle()
        InlineFinish.end()
        Resumed.end()
        self._changes.has_told(gdb_breakpoint for gdb_breakpoint in stopped_at if gdb_breakpoint.is_valid())
        self.breakpoints.renew()
        hit = any(map(follows, stopped_at))
        moves = hit and (self.debugger.inferiors.are_several or self.debugger.has_originals())
        is_lost = moves or any(map(catches_in_code, stopped_at))
        left = [gdb_breakpoint for gdb_breakpoint in stopped_at if gdb_breakpoint.is_valid()]
        if is_lost and not any(
            gdb_breakpoint.commands or gdb_breakpoint.temporary for gdb_breakpoint in left
        ):  # GDB has still to act on these
            forget_hit()
        self.debugger.inferiors.hit_moves = hit or self.debugger.inferiors.are_several
        self.breakpoints.watch_events()
        self.breakpoints.spare_tasks()
        with warnings("no rank is selected"):
            moved = self.debugger.follow()
            self.breakpoints.disabled_by_gdb.end()
            reported = self.breakpoints.hits.reported
            if reported is not None:
                show_users(event)
                self.breakpoints.hits.tell()
            elif moved and not is_silent(event):
                self._show()
            self._tell_changes(any(map(tells_change, stopped_at)))
            self.debugger.watches.tell_ends()
            self.debugger.watches.settle()
            if not (is_silent(event) if reported is None else reported.silent):
                self.debugger.displays.show()
        self._settle()  # what GDB has told meanwhile
        # In non-stop mode GDB goes back to the user's thread.
        if getattr(event, "inferior_thread", None) is not None and not is_batch():
            post(self._follow_thread)

    def _tell_changes(self, are_reason: bool) -> None:
        """Of what is watched, where GDB does not; if it has stopped for them, then in the rank whose the last is."""
        unseen, self._changes.unseen = self._changes.unseen, []
        for change in unseen:
            gdb.write(change.text())
        if unseen and are_reason:
            moment = self.debugger.moment()
            if switch_to_thread_of(moment, moment.rank(unseen[-1].before.rank)):
                self.debugger.follow()
            gdb.write(output_of("frame").partition("  ")[2])

    def _show(self) -> None:
        """Where the rank is that runs on the thread: GDB has told it without the rank's symbols."""
        if self.debugger.selected is not None:
            gdb.write(f"[Rank {self.debugger.selected} runs here]\n" + output_of("frame"))

    def _resumed(self, event: Any) -> None:
        hooks.look_for_program()
        if Resumed.note():
            UsersCommands.look()
        self.breakpoints.resumed()
        self.debugger.inferiors.has_run()
        self.debugger.selection.forget("the target runs")  # or can not: see `_before_prompt`
        self.debugger.state().focus.announce()
        self.debugger.state().focus.late_libraries.resumed()

    def _called(self, event: Any) -> None:
        """GDB calls a function in the program, for which it has no event of going on, or the call has ended."""
        Calls.note(event)
        if Calls.running:
            with warnings("GDB reads files that no rank runs"):
                self.debugger.state().focus.late_libraries.resumed()

    def _before_run(self) -> None:
        self._unread_libraries.begin()
        self.breakpoints.before_run()

    def _ended(self, event: Any) -> None:
        self.breakpoints.forget(event.inferior.num)
        self.debugger.inferiors.ended(event.inferior)
        self.breakpoints.has_ended = True
        self._changes.unseen.clear()
        InlineFinish.end()

    def _added(self) -> None:
        self.debugger.inferiors.give_back_libraries(for_good=True)
        self._post_settling()

    def _removed(self, event: Any) -> None:
        self.breakpoints.forget(event.inferior.num)
        self.debugger.inferiors.removed(event.inferior)

    def _register_changed(self, event: Any) -> None:
        if PcWrite.is_ours:
            return
        with warnings("a running rank's register may have changed"):
            for name in self.debugger.selection.undo_register_writes():
                gdb.write(
                    f"warning: ${name} is unchanged: the selected rank is suspended, and GDB would write the "
                    "register of its thread, on which another rank runs\n",
                    gdb.STDERR,
                )

    def _loaded(self, event: Any) -> None:
        hooks.look_for_program()
        inferiors = self.debugger.inferiors
        if inferiors.is_known and not inferiors.is_moving and is_of_new_program(event.new_objfile):
            with warnings("breakpoints of ranks that are gone may be there"):
                self.breakpoints.forget(gdb.selected_inferior().num)
                self.debugger.inferiors.executed()
        path = path_in_target(event.new_objfile)
        if not inferiors.is_moving:
            with warnings("a step in a process that a rank has forked may run on"):
                inferiors.forked(path)
        self.debugger.state().focus.original_loaded(path)
        self.breakpoints.loaded()

    def _breakpoint_changed(self, breakpoint: gdb.Breakpoint) -> None:
        """GDB may be amid a walk over breakpoints: what follows from it is done by `_settle`."""
        with warnings("the breakpoint may be missing in ranks"):
            self.breakpoints.changed(breakpoint)
        with warnings("the watchpoint may come to mean another rank"):
            self.debugger.watches.noticed(breakpoint, self.debugger.inferiors.rank_in_focus)
        self._post_settling()

    def _breakpoint_deleted(self, breakpoint: gdb.Breakpoint) -> None:
        self.breakpoints.deleted(breakpoint)
        self._post_settling()

    def _post_settling(self) -> None:
        """Programs that drive GDB see no prompt."""
        if not self._settles_soon and not self._is_ending and not is_batch():
            self._settles_soon = True
            post(self._settle_soon)

    def _ends(self, event: object) -> None:
        self._is_ending = True

    def _settle_soon(self) -> None:
        """While the program runs it is too late: the next stop comes in time."""
        self._settles_soon = False
        thread = gdb.selected_thread()
        if thread is None or not thread.is_running() or gdb.parameter("non-stop"):
            self._settle()

    def _settle(self) -> None:
        if UsersCommands.wait:  # GDB goes on, or comes to the prompt
            return
        with warnings("breakpoints may be missing in ranks"):
            self.breakpoints.settle()

    def _dprintf_was_made(self) -> None:
        self.breakpoints.dprintfs.were_made()
        self._settle()

    def _restarted(self) -> None:
        self.debugger.inferiors.has_run()
        self.debugger.selection.forget("another checkpoint has been restarted")
        self._before_prompt()

    def _before_prompt(self, *_: object) -> None:
        """After `thread N`, `core-file`, and where GDB could not let the target run.

        It has no event for them, and has told the frame without the symbols.
        """
        Calls.forget()
        hooks.look_for_program()
        self._settle()
        self._give_back_libraries()
        self._unread_libraries.settle()
        self.debugger.inferiors.settle()
        before = self.debugger.selected
        are_lost = self.debugger.state().focus.are_lost()
        if are_lost:
            forget_hit()
            self.debugger.selection.forget("GDB's symbols have changed")
        if self._follow_thread() and not (are_lost and self.debugger.selected == before):
            self._show()

    def _give_back_libraries(self) -> None:
        """At a prompt: GDB may have stopped in the midst of the user's commands; in the background it may run."""
        thread = gdb.selected_thread()
        if thread is None or not thread.is_running():
            self.debugger.inferiors.give_back_libraries()

    def _follow_thread(self) -> bool:
        """Select the rank that runs on the thread that GDB has selected; True if symbols moved to it."""
        thread, moved = gdb.selected_thread(), False
        if thread is not None and thread.global_num != self.debugger.selection.thread and not thread.is_running():
            with warnings("no rank is selected"):
                moved = self.debugger.follow()
        return moved


def show_users(event: Any) -> None:
    """Let users' own handlers of stops, which come after ours, see their breakpoints, and not what stands for them."""
    event.breakpoints[:] = [user_of(gdb_breakpoint) for gdb_breakpoint in event.breakpoints]
    event.breakpoint = user_of(event.breakpoint)


def user_of(gdb_breakpoint: Any) -> Any:
    """Return the user's breakpoint for one of ours, or the breakpoint itself."""
    return gdb_breakpoint.user if isinstance(gdb_breakpoint, Follower) else gdb_breakpoint


def trust_own_script() -> None:
    """Let GDB read the script beside the runtime's library, which sources what has just been sourced.

    It would say in ten lines that it has declined to.
    """
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    script = os.path.join(root, "build", "runtime", "lib", "librankmpi.so-gdb.py")
    if os.path.exists(script) and os.pathsep not in script:
        gdb.execute(f"add-auto-load-safe-path {script}", to_string=True)


def tells_change(stopped_at: gdb.Breakpoint) -> bool:
    """Whether it has stopped for a change of which GDB says nothing."""
    if isinstance(stopped_at, Follower):
        return stopped_at.is_silenced
    return isinstance(stopped_at, RemappedWatchpoint)


def is_silent(event: Any) -> bool:
    """Whether GDB stops without a word, as a breakpoint's commands ask for."""
    hit = getattr(event, "breakpoints", ())
    return bool(hit) and all(map(has_silent_commands, hit))


def switch_on() -> None:
    """Once per GDB; sourcing again changes nothing."""
    global _extension
    if _extension is None:
        # Half of it would stay in GDB, beside the one of the next attempt.
        with uninterrupted(), warnings("the extension is not loaded; source it again after the process has ended"):
            _extension = Extension()
        if _extension is not None:
            _extension.begin()
