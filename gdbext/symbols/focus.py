"""Whose symbols GDB has: those of one rank's copies at a time, and never the original's beside them.

Takes a rank (or none: then the original's); tells GDB where the copied objects' symbols lie. Names, lines, scopes and
call frame information then mean that rank in every frame, those of the MPI library included. Several copies at once
would not: GDB's lookups by name, by `'file.c'::name` and of static members take the first file that fits.

Never writes to the target and never runs it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Optional

import gdb

from gdbext.displays.displays import Displays
from gdbext.gdb_api import skipped_inline_frames
from gdbext.gdb_api.breakpoint_locations import taken_out
from gdbext.gdb_api.language import is_automatic
from gdbext.gdb_api.libraries.forget import (
    KERNEL_LIBRARY,
    forget_libraries,
    is_any_read,
    kept_names,
    kernel_library,
    library_files,
)
from gdbext.gdb_api.libraries.loaded_later import LateLibraries
from gdbext.gdb_api.rank_settings import Settings
from gdbext.gdb_api.run_commands import DebuggerError, execute, quoted, set_convenience, uninterrupted
from gdbext.gdb_api.target import is_core, path_here, path_in_target, path_of, program_path
from gdbext.symbols.lookup_order import MOST, Anchors, add_symbol_file
from gdbext.symbols.object_placement import copied, copied_paths
from gdbext.symbols.rank_symbol_files import LoadedSymbols, WantedSymbols
from gdbext.symbols.script_attachments import Attached, attach, attached_to
from gdbext.watchpoints.watchpoints import Watches
from pieglobalsfind.errors import TargetError
from pieglobalsfind.model import RUNNING
from pieglobalsfind.session.process_view import ProcessView


class Focus:
    """The focus of one inferior."""

    def __init__(self, settings: Settings, displays: Displays, watches: Watches, on_move: Callable[[], None]) -> None:
        self._on_move = on_move
        self.before_move: Callable[[], None] = lambda: None  # called before symbols mean another rank
        self.before_symbols: Callable[[], None] = lambda: None  # called before GDB reads those of a rank
        self.without_symbols: Callable[[], AbstractContextManager[None]] = nullcontext  # where it drops them
        self._settings = settings
        self.wanted = WantedSymbols(settings)
        self._displays = displays
        self._watches = watches
        self._anchors = Anchors()
        self.rank: Optional[int] = None
        self._placed: tuple[LoadedSymbols, ...] = ()
        self._anchored = 0  # how many of them have anchors
        self._out: frozenset[str] = frozenset()  # the files of which GDB has no symbols by itself any more
        self._is_back = False  # one of these has been loaded again
        self._attached: dict[str, Attached] = {}  # to symbols of users' files, by their paths
        self._kernel_library = ""
        self.late_libraries = LateLibraries()
        self._program = ""  # what GDB had as the program when symbols were placed
        self._instead: tuple[LoadedSymbols, ...] = ()
        self._speaks = False  # the language of the program
        self.language_until_then = ""  # that GDB was given before it could know the program
        self.moving = False
        self.moves = 0  # how often GDB's symbols were replaced

    @property
    def paths(self) -> frozenset[str]:
        """The files whose symbols are in focus."""
        return frozenset(loaded_symbols.path for loaded_symbols in self._placed)

    def end(self) -> None:
        """The process is gone. Its symbols stay until there is another process or program, as those of libraries do."""
        self._instead = (
            tuple(loaded_symbols for loaded_symbols in self._placed if loaded_symbols.is_main) or self._instead
        )
        self._placed = tuple(loaded_symbols for loaded_symbols in self._placed if not loaded_symbols.is_main)
        self.rank = None
        self._kernel_library = ""
        self.late_libraries.forget()

    def forget(self) -> None:
        """Another process runs: GDB has dropped what belonged to the last one, whose files may have been built anew.

        What stands for the main program stays until `restore_program`.
        """
        self.wanted.forget()
        self._instead = (
            tuple(loaded_symbols for loaded_symbols in self._placed if loaded_symbols.is_main) or self._instead
        )
        with self.without_symbols():
            self._remove(tuple(loaded_symbols for loaded_symbols in self._placed if not loaded_symbols.is_main))
            self._anchors.forget()
        self._placed, self._out, self._is_back, self.rank = (), frozenset(), False, None
        self._speaks = False
        self._kernel_library = ""
        self.late_libraries.forget()

    def drop(self) -> None:
        """Another program runs in the process; GDB has its symbols already in place of the main program's."""
        with taken_out():  # GDB does not know yet where the program lies, and would write breakpoints there
            self._remove(tuple(loaded_symbols for loaded_symbols in self._placed if not loaded_symbols.is_main))
            self._anchors.forget()
        self._placed, self._instead, self.wanted.main_program, self.rank = (), (), "", None
        self.late_libraries.forget()
        self.announce()

    def restore_program(self) -> None:
        """Let the main program be itself again; never in the event of a process's end: GDB 13 aborts then."""
        if self._placed and self._program != program_path():
            self.forget()
        if self.wanted.main_program:
            with suppress(DebuggerError):  # another program may be there by now
                execute(f"symbol-file {quoted(self.wanted.main_program)}")
        self._remove(self._instead)
        self._instead, self.wanted.main_program = (), ""

    def has_out(self, path: str) -> bool:
        """Whether GDB has forgotten a file's own symbols for those of ranks."""
        return path in self._out

    def inherit(self, parent: Focus) -> None:
        """Have the symbols of the process that this one was forked from: the copies lie where they do there.

        GDB has them here already where it goes on with the new process alone.
        """
        placed = tuple(loaded_symbols for loaded_symbols in parent._placed if not loaded_symbols.is_main)
        self.wanted.inherit(parent.wanted)
        self.moving = True
        try:
            with uninterrupted():
                there = set(map(path_of, gdb.objfiles()))
                self._anchors.inherit(parent._anchors)
                for loaded_symbols in placed:
                    if loaded_symbols.path not in there:
                        add_symbol_file(loaded_symbols.path, loaded_symbols.bias)
                self._placed, self._program, self.rank = placed, program_path(), parent.rank
        finally:
            self.moving = False

    def original_loaded(self, path: str) -> None:
        """GDB has read symbols of `path` by itself."""
        if not self.moving and path in self._out:
            self._out -= {path}
            self._is_back = True

    def has_originals(self, moment: ProcessView) -> bool:
        """Whether GDB may have symbols of originals, or of copies that are files, by itself.

        While ranks are made, a file may be loaded for long before it is known whose copy it is.
        """
        return not copied_paths(moment) <= self._out

    def are_lost(self) -> bool:
        """Whether GDB has dropped symbols in focus, or the originals' are beside them: they are forgotten then.

        It does so at `symbol-file` and `file`.
        """
        if self.moving or not self._placed:
            return False
        there = {path_of(objfile) for objfile in gdb.objfiles()}
        lost = not self.paths <= there or self._is_back
        if lost:
            with self.without_symbols():
                self._remove(tuple(loaded_symbols for loaded_symbols in self._placed if loaded_symbols.path in there))
                self._anchors.forget()
            self._placed, self._out, self._is_back, self.rank = (), frozenset(), False, None
        return lost

    def move(self, moment: ProcessView, rank: Optional[int], inserted: bool = False) -> tuple[str, ...]:
        """Make symbols mean `rank`, or the original if None; returns why files could not be used.

        `inserted`: breakpoints may be in the target's memory now, as they are inside a breakpoint's stop method.
        """
        if not inserted:
            self.are_lost()
        self.before_move()
        self.moving = True
        try:
            if copied(moment) and self.has_originals(moment):
                with uninterrupted():
                    skipped_inline_frames.forget()
                    self._tell_program(moment)
                    self.take_out(moment, inserted)
            placed, failures = self.wanted.of(moment, rank)
            with uninterrupted():  # GDB's symbols and what is known of them here must agree
                together = self._ranks_to_anchor(moment, placed, inserted)
                if placed != self._placed or together:
                    skipped_inline_frames.forget()
                    with self._watches.changes.unmissed():
                        if rank != self.rank:
                            self._watches.leave(self.rank, inserted)
                        if together:
                            self._anchor(moment, rank, placed, together, inserted)
                        self._place(placed)
                self.rank = rank
                self._speak()
                self.announce()
        finally:
            self.moving = False
            self._on_move()
        return failures

    def _speak(self) -> None:
        """Have GDB read expressions in the language of the program's `main` where a frame has none, as in a process.

        It has chosen by the launcher's, before it knew the program.
        """
        if self._placed and not self._speaks:
            self._speaks = True
            if is_automatic() or gdb.parameter("language") == self.language_until_then:
                execute("set language auto")
            self.language_until_then = ""

    @contextmanager
    def beside(self, moment: ProcessView, rank: int) -> Iterator[tuple[gdb.Objfile, ...]]:
        """Let GDB have a rank's symbols, too, inside; gives them. Those in focus stay, and names are theirs first.

        Raises `TargetError` where only one rank's can be there.
        """
        placed, failures = self.wanted.of(moment, rank)
        if failures or any(loaded_symbols.is_main for loaded_symbols in placed):
            raise TargetError(f"rank {rank} can't be shown while rank {self.rank} steps", "the step ends here")
        objfiles, added, stepping = gdb.objfiles(), [], self.rank
        self.moving = True
        try:
            with uninterrupted(), self._watches.changes.unmissed():
                for loaded_symbols in placed:
                    if loaded_symbols not in self._placed:
                        self._load(loaded_symbols, self._anchors.has(loaded_symbols))
                        added.append(loaded_symbols)
            self.rank = rank
            self.announce()
            yield tuple(objfile for objfile in gdb.objfiles() if objfile not in objfiles)
        finally:
            with uninterrupted(), self._watches.changes.unmissed():
                for loaded_symbols in added:
                    if self._anchors.has(loaded_symbols):
                        self._anchors.remove(loaded_symbols)
                    else:
                        self._anchors.remove_newest(loaded_symbols)
                    self.wanted.drop(loaded_symbols.path)
            self.rank = stepping
            self.announce()
            self.moving = False

    def announce(self) -> None:
        """Let `$_rank` tell the rank in focus: conditions are evaluated before the selection can follow."""
        set_convenience("_rank", -1 if self.rank is None else self.rank)

    def _place(self, wanted: tuple[LoadedSymbols, ...]) -> None:
        """Have symbols of `wanted` alone. The new come before the old go, so that GDB reads the file only once."""
        self._program = program_path()
        self.moves += 1
        if self.wanted.are_new:
            self.wanted.are_new = False
            execute("maintenance flush source-cache")  # as GDB does when it reads a program's symbols again
        kept = first_in_common(self._placed, wanted)
        old, added = self._placed[kept:], wanted[kept:]
        # Nothing may come to anchors, which are early, after something that has none.
        anchored = self._anchors.count_for(wanted) - kept if kept <= self._anchored else 0
        self._displays.take_over()
        self._keep_attached({self.wanted.files_of_views.get(loaded_symbols.path, "") for loaded_symbols in old})
        for number, loaded_symbols in enumerate(added):
            self.before_symbols()
            objfile = self._load(loaded_symbols, number < anchored)
            self._placed += (loaded_symbols,)
            attach(self._attached.get(self.wanted.files_of_views[loaded_symbols.path], {}), objfile)
        self._remove(old)
        self._placed, self._anchored = wanted, kept + max(anchored, 0) if kept <= self._anchored else self._anchored

    def _load(self, loaded_symbols: LoadedSymbols, is_anchored: bool) -> gdb.Objfile:
        if is_anchored:
            return self._anchors.place(loaded_symbols)
        if loaded_symbols.is_main:
            execute(f"symbol-file {quoted(loaded_symbols.path)} -o {loaded_symbols.bias:#x}")
        else:
            add_symbol_file(loaded_symbols.path, loaded_symbols.bias)
        return [objfile for objfile in gdb.objfiles() if path_of(objfile) == loaded_symbols.path][-1]

    def _ranks_to_anchor(self, moment: ProcessView, placed: tuple[LoadedSymbols, ...], inserted: bool) -> int:
        """How many ranks shall get anchors now: once ranks run, none amid that, or they would pass breakpoints.

        None in a core file: GDB reads what that lacks, as code, from sections of files, and moves those of all files of
        one name to where it has placed the last (exec.c: exec_set_section_address).
        """
        if is_core():
            return 0
        is_amid = inserted or bool(gdb.parameter("non-stop"))
        if is_amid and (self._placed or any(rank.state == RUNNING for rank in moment.table.ranks)):
            return 0
        count = self._anchors.missing_for(placed, self.wanted.files_of_views.keys())
        return MOST if count and is_amid else count

    def _anchor(
        self,
        moment: ProcessView,
        rank: Optional[int],
        placed: tuple[LoadedSymbols, ...],
        together: int,
        inserted: bool,
    ) -> None:
        """Make anchors for the symbols of `rank`, and of ranks that may be next, before those of libraries."""
        self._displays.take_over()
        if not self._anchored:  # GDB has them after libraries: they have to come anew
            with self.without_symbols():
                self._remove(tuple(loaded_symbols for loaded_symbols in self._placed if not loaded_symbols.is_main))
            self._placed = tuple(loaded_symbols for loaded_symbols in self._placed if loaded_symbols.is_main)
        numbers = [present.rank for present in moment.table.ranks]
        after = bisect(numbers, -1 if rank is None else rank)
        others = (self.wanted.places(moment, number) for number in (numbers[after:] + numbers[:after])[:together])
        self._anchors.make_room(self._placed)
        before = gdb.objfiles()
        attached = {path_of(objfile): attached_to(objfile) for objfile in before}
        self._read_libraries_again(self._out, inserted, lambda: self._anchors.add([placed, *others]))
        for objfile in gdb.objfiles():
            if objfile not in before:
                attach(attached.get(path_of(objfile), {}), objfile)

    def _keep_attached(self, paths: Collection[str]) -> None:
        """Keep what scripts have attached to users' files, before GDB forgets their symbols."""
        for objfile in gdb.objfiles():
            path = path_in_target(objfile)
            path = self.wanted.files_of_views.get(path, path)
            if path in paths:
                self._attached[path] = attached_to(objfile) or self._attached.get(path, {})

    def _remove(self, placed: tuple[LoadedSymbols, ...]) -> None:
        """Of two places of a file GDB removes the one that it has had for longer."""
        for loaded_symbols in placed:
            if not loaded_symbols.is_main:  # those are replaced
                self._anchors.remove(loaded_symbols)
            self.wanted.drop(loaded_symbols.path)

    def _tell_program(self, moment: ProcessView) -> None:
        if is_core():
            from gdbext.symbols.core_program import tell_program

            tell_program(moment.target, self._settings.object_path)

    def take_out(self, moment: ProcessView, inserted: bool) -> None:
        """Let GDB forget the originals' symbols; breakpoints in them are pending afterwards, and in no memory."""
        paths = copied_paths(moment)
        loaded = [objfile for objfile in gdb.objfiles() if is_from_file(objfile) and objfile.owner is None]
        for objfile in gdb.objfiles():
            if objfile.owner is not None and path_in_target(objfile.owner) in paths:
                self.wanted.debug_files[path_in_target(objfile.owner)] = path_here(objfile)
        if any(path_in_target(objfile) in paths for objfile in loaded):
            self._displays.take_over()
            self._keep_attached(paths)
            self._read_libraries_again(paths, inserted)
        self._out, self._is_back = self._out | paths, False

    def _read_libraries_again(
        self, without: frozenset[str], inserted: bool, after: Optional[Callable[[], None]] = None
    ) -> None:
        """Let GDB forget libraries, and read all but some again, after something else; scripts run the first time."""
        loaded = [objfile for objfile in gdb.objfiles() if is_from_file(objfile) and objfile.owner is None]
        self._kernel_library = kernel_library() or self._kernel_library
        stay = [objfile for objfile in loaded if path_in_target(objfile) not in without]
        keep, files = kept_names(stay, without), library_files(stay)
        forget_libraries(keep, files, self._kernel_library, inserted or always_inserted(), after)
        self.late_libraries.watch(without, inserted)


def first_in_common(old: tuple[LoadedSymbols, ...], wanted: tuple[LoadedSymbols, ...]) -> int:
    """How many of the first files may stay: GDB looks into files in their order, and removes them by their paths."""
    kept = next((at for at, pair in enumerate(zip(old, wanted)) if pair[0] != pair[1]), min(len(old), len(wanted)))
    gone = {loaded_symbols.path for loaded_symbols in old[kept:]}
    return kept if gone.isdisjoint(loaded_symbols.path for loaded_symbols in old[:kept]) else 0


def is_from_file(objfile: gdb.Objfile) -> bool:
    """Whether GDB has read it from a file, and not from memory; GDB 12 does not tell, and names what is from memory."""
    return bool(getattr(objfile, "is_file", not path_of(objfile).startswith(KERNEL_LIBRARY)))


def always_inserted() -> bool:
    """Whether GDB leaves breakpoints in memory while the target is stopped."""
    return bool(gdb.parameter("breakpoint always-inserted")) or bool(gdb.parameter("non-stop"))


def is_of_new_program(objfile: gdb.Objfile) -> bool:
    """Whether GDB has read it because the process executes another program: by then it has forgotten all libraries.

    Of a program that a fork copies it has forgotten none, but reads it for a space that is new, before these.
    """
    space = objfile.progspace
    if space != gdb.selected_inferior().progspace or path_of(objfile) != program_path() or is_core():
        return False
    is_new = len(gdb.inferiors()) > 1 and space.objfiles() == [objfile]
    return not is_new and not is_any_read()
