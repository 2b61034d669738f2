"""Whose symbols GDB has: those of one rank's copies at a time, and never the original's beside them.

Takes a rank (or none: then the original's); tells GDB where the copied objects' symbols lie. Names, lines, scopes and
call frame information then mean that rank in every frame, those of the MPI library included. Several copies at once
would not: GDB's lookups by name, by `'file.c'::name` and of static members take the first file that fits.

Never writes to the target and never runs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Optional, Union

import gdb

from gdbext.gdb_api import inline_callers
from gdbext.gdb_api.language import is_automatic
from gdbext.gdb_api.late_libraries import LateLibraries
from gdbext.gdb_api.libraries import (
    KERNEL_LIBRARY,
    forget_libraries,
    is_any_read,
    kept_names,
    kernel_library,
    library_files,
)
from gdbext.gdb_api.locations import taken_out
from gdbext.gdb_api.run_gdb import DebuggerError, execute, quoted, set_convenience, uninterrupted
from gdbext.gdb_api.settings import Settings
from gdbext.gdb_api.target import is_core, path_here, path_in_target, path_of
from gdbext.symbols.displays import Displays
from gdbext.watchpoints.watchpoints import Watches
from pieglobalsfind.elf.file import SHF_EXECINSTR, open_elf
from pieglobalsfind.elf.locate import identity_of, object_path
from pieglobalsfind.errors import ObjectFileError, TargetError
from pieglobalsfind.model import Absent, Object, Rebase
from pieglobalsfind.ranks.variable_address import data_place, lies_apart, runs_original
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.targets import in_address_space

if TYPE_CHECKING:  # what only some targets need is imported when it is needed: sourcing the extension must be quick
    from pieglobalsfind.debugger.rank_debug_file import Apart


@dataclass(frozen=True)
class LoadedSymbols:
    """A file whose symbols GDB has at `bias` (what is added to p_vaddr's).

    `is_main`: in place of the main program's own, which GDB looks into before all others.
    """

    path: str
    bias: int
    is_main: bool = False


class Focus:
    """The focus of one inferior."""

    def __init__(self, settings: Settings, displays: Displays, watches: Watches, on_move: Callable[[], None]) -> None:
        self._on_move = on_move
        self._settings = settings
        self._displays = displays
        self._watches = watches
        self.rank: Optional[int] = None
        self._placed: tuple[LoadedSymbols, ...] = ()
        self._out: frozenset[str] = frozenset()  # the files of which GDB has no symbols by itself any more
        self._is_back = False  # one of these has been loaded again
        self._views_apart: dict[tuple[Optional[int], int, LoadedSymbols], LoadedSymbols] = {}
        self._files: dict[str, Union[str, Absent]] = {}
        self._objects: dict[str, str] = {}  # the objects' paths by those of their views
        self._debug_files: dict[str, str] = {}
        self._kernel_library = ""
        self._late_libraries = LateLibraries()
        self._main_program = ""
        self._program = ""  # what GDB had as the program when symbols were placed
        self._instead: tuple[LoadedSymbols, ...] = ()
        self._apart: Optional[Apart] = None
        self._speaks = False  # the language of the program
        self.language_until_then = ""  # that GDB was given before it could know the program
        self.moving = False
        self.moves = 0  # how often GDB's symbols were replaced

    @property
    def paths(self) -> frozenset[str]:
        """The files whose symbols are in focus."""
        return frozenset(loaded_symbols.path for loaded_symbols in self._placed)

    @property
    def files_of_views(self) -> Mapping[str, str]:
        """The users' files, by the paths of what GDB has their symbols from."""
        return self._objects

    def end(self) -> None:
        """The process is gone. Its symbols stay until there is another process or program, as those of libraries do."""
        self._instead = (
            tuple(loaded_symbols for loaded_symbols in self._placed if loaded_symbols.is_main) or self._instead
        )
        self._placed = tuple(loaded_symbols for loaded_symbols in self._placed if not loaded_symbols.is_main)
        self.rank = None
        self._kernel_library = ""
        self._late_libraries.forget()

    def forget(self) -> None:
        """Another process runs: GDB has dropped what belonged to the last one, whose files may have been built anew.

        What stands for the main program stays until `restore_program`.
        """
        self._files.clear()
        self._debug_files.clear()
        if self._placed:
            self._displays.save()
        self._instead = (
            tuple(loaded_symbols for loaded_symbols in self._placed if loaded_symbols.is_main) or self._instead
        )
        self._remove(tuple(loaded_symbols for loaded_symbols in self._placed if not loaded_symbols.is_main))
        self._placed, self._out, self._is_back, self.rank = (), frozenset(), False, None
        self._speaks = False
        self._kernel_library = ""
        self._late_libraries.forget()

    def drop(self) -> None:
        """Another program runs in the process; GDB has its symbols already in place of the main program's."""
        with taken_out():  # GDB does not know yet where the program lies, and would write breakpoints there
            self._remove(tuple(loaded_symbols for loaded_symbols in self._placed if not loaded_symbols.is_main))
        self._placed, self._instead, self._main_program, self.rank = (), (), "", None
        self.announce()

    def restore_program(self) -> None:
        """Let the main program be itself again; never in the event of a process's end: GDB 13 aborts then."""
        if self._placed and self._program != program_path():
            self.forget()
        if self._main_program:
            with suppress(DebuggerError):  # another program may be there by now
                execute(f"symbol-file {quoted(self._main_program)}")
        self._remove(self._instead)
        self._instead, self._main_program = (), ""

    def has_out(self, path: str) -> bool:
        """Whether GDB has forgotten a file's own symbols for those of ranks."""
        return path in self._out

    def inherit(self, parent: Focus) -> None:
        """Have the symbols of the process that this one was forked from: the copies lie where they do there."""
        placed = tuple(loaded_symbols for loaded_symbols in parent._placed if not loaded_symbols.is_main)
        self._files, self._objects = dict(parent._files), dict(parent._objects)
        self.moving = True
        try:
            with uninterrupted():
                for loaded_symbols in placed:
                    execute(f"add-symbol-file {quoted(loaded_symbols.path)} -o {loaded_symbols.bias:#x}")
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
            self._remove(tuple(loaded_symbols for loaded_symbols in self._placed if loaded_symbols.path in there))
            self._placed, self._out, self._is_back, self.rank = (), frozenset(), False, None
        return lost

    def move(self, moment: ProcessView, rank: Optional[int], inserted: bool = False) -> tuple[str, ...]:
        """Make symbols mean `rank`, or the original if None; returns why files could not be used.

        `inserted`: breakpoints may be in the target's memory now, as they are inside a breakpoint's stop method.
        """
        if not inserted:
            self.are_lost()
        # What a breakpoint in the original writes there now would be copied into every rank.
        nowhere = rank is None and is_copying(moment)
        wanted = {
            elf_object.index: None if nowhere else bias_of(moment, elf_object, rank) for elf_object in copied(moment)
        }
        self.moving = True
        try:
            if wanted and self.has_originals(moment):
                with uninterrupted():
                    inline_callers.forget()
                    self._tell_program(moment)
                    self.take_out(moment, inserted)
            placed, failures = self._planned(moment, rank, wanted)
            with uninterrupted():  # GDB's symbols and what is known of them here must agree
                if placed != self._placed:
                    inline_callers.forget()
                    with self._watches.changes.unmissed():
                        if rank != self.rank:
                            self._watches.leave(self.rank, inserted)
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
        wanted = {elf_object.index: bias_of(moment, elf_object, rank) for elf_object in copied(moment)}
        kept = self._views_apart
        placed, failures = self._planned(moment, rank, wanted)
        self._views_apart = kept  # those of `rank` are gone afterwards
        if failures or any(loaded_symbols.is_main for loaded_symbols in placed):
            raise TargetError(f"rank {rank} can't be shown while rank {self.rank} steps", "the step ends here")
        objfiles, added, stepping = gdb.objfiles(), [], self.rank
        self.moving = True
        try:
            with uninterrupted(), self._watches.changes.unmissed():
                for loaded_symbols in placed:
                    if loaded_symbols not in self._placed:
                        execute(f"add-symbol-file {quoted(loaded_symbols.path)} -o {loaded_symbols.bias:#x}")
                        added.append(loaded_symbols)
            self.rank = rank
            self.announce()
            yield tuple(objfile for objfile in gdb.objfiles() if objfile not in objfiles)
        finally:
            with uninterrupted(), self._watches.changes.unmissed():
                for loaded_symbols in added:
                    execute(f"remove-symbol-file -a {loaded_symbols.bias + code_of(loaded_symbols.path):#x}")
                    if self._apart is not None:
                        self._apart.drop(loaded_symbols.path)
            self.rank = stepping
            self.announce()
            self.moving = False

    def announce(self) -> None:
        """Let `$_rank` tell the rank in focus: conditions are evaluated before the selection can follow."""
        set_convenience("_rank", -1 if self.rank is None else self.rank)

    def _planned(
        self, moment: ProcessView, rank: Optional[int], wanted: dict[int, Optional[int]]
    ) -> tuple[tuple[LoadedSymbols, ...], tuple[str, ...]]:
        placed, failures = [], []
        for elf_object in copied(moment):
            bias, file = wanted[elf_object.index], self._file(moment, elf_object)
            if isinstance(file, Absent):
                failures.append(f"{file.reason}: {file.hint}" if file.hint else file.reason)
            elif bias is not None:
                view = self._view(moment, elf_object, rank, LoadedSymbols(file, bias))
                if rank is not None and not has_copy(moment, elf_object.index, rank) and is_elsewhere(moment, rank):
                    process = moment.rank(rank).pages_of
                    remedy = "a core file of that one has them" if is_core() else "attach to that one"
                    failures.append(f"rank {rank}'s variables are in process {process}'s own pages: {remedy}")
                if isinstance(view, Absent):
                    failures.append(str(view))
                    continue
                self._objects[view.path] = elf_object.path
                if not self._is_there(elf_object, file, view):
                    placed.append(self._as_main(elf_object, file, view))
                if rank is not None and runs_original(moment.rank(rank), elf_object):
                    # After the rank's own: GDB takes a static variable of the first file that has one of the name.
                    plain = LoadedSymbols(file, elf_object.load_bias)
                    original = self._view(moment, elf_object, rank, plain, of_original=True)
                    placed += [] if isinstance(original, Absent) else [original]
        return tuple(placed), tuple(failures)

    def _is_there(self, elf_object: Object, file: str, view: LoadedSymbols) -> bool:
        """Whether GDB has it as the main program already: at one address a second one answers, too."""
        is_plain = view.path == file and view.bias == elf_object.load_bias
        return is_plain and self._main_program != elf_object.path and is_main_program(elf_object)

    def _as_main(self, elf_object: Object, file: str, view: LoadedSymbols) -> LoadedSymbols:
        """Thread-local variables of the main program have to lie in what GDB takes for it, until it is gone."""
        if view.path != file and is_main_program(elf_object):
            self._main_program = elf_object.path
        return replace(view, is_main=bool(self._main_program) and self._main_program == elf_object.path)

    def _view(
        self,
        moment: ProcessView,
        elf_object: Object,
        rank: Optional[int],
        plain: LoadedSymbols,
        of_original: bool = False,
    ) -> Union[LoadedSymbols, Absent]:
        """The file as it is, or with the addresses of what lies apart on this rank.

        Without a rank thread-local variables are refused: GDB takes those of a file that it has not loaded as a library
        for another module's. `of_original`: the original itself, as the rank's code uses it there.
        """
        owner = None if rank is None else moment.rank(rank)
        elsewhere = rank is not None and is_elsewhere(moment, rank)
        lies_elsewhere = elf_object.tls_size > 0 if owner is None or of_original else lies_apart(owner, elf_object)
        if not elsewhere and not lies_elsewhere:
            return plain
        from pieglobalsfind.debugger import rank_debug_file
        from pieglobalsfind.dwarf import variable_cache

        key = (rank, moment.table.generation, plain)
        if key not in self._views_apart:
            try:
                path = object_path(moment.target, identity_of(elf_object), self._settings.object_path)
                variables = variable_cache.declared(str(path), elf_object.build_id).variables
                self._apart = self._apart or rank_debug_file.Apart(with_symbols=True)
                made = self._apart.view(
                    plain.path,
                    variables,
                    rank_debug_file.Instance(owner, elf_object, elsewhere, of_original),
                    plain.bias,
                )
            except (OSError, ObjectFileError) as error:
                return Absent(f"variables of {elf_object.path} outside its copies can't be shown, {error}")
            self._views_apart = {**self._views_apart, key: LoadedSymbols(made, plain.bias)}
        return self._views_apart[key]

    def _file(self, moment: ProcessView, elf_object: Object) -> Union[str, Absent]:
        if elf_object.path not in self._files or isinstance(self._files[elf_object.path], Absent):
            self._files[elf_object.path] = self._make_file(moment, elf_object)
        return self._files[elf_object.path]

    def _make_file(self, moment: ProcessView, elf_object: Object) -> Union[str, Absent]:
        path = object_path(moment.target, identity_of(elf_object), self._settings.object_path)
        if isinstance(path, Absent):
            return Absent(path.reason, "name the folder that has it by `set rank object-path`")
        from gdbext.symbols import views

        try:
            return views.view_of(path, elf_object.build_id, self._debug_files.get(elf_object.path, ""))
        except ObjectFileError as error:
            return Absent(error.sentence, error.hint)

    def _place(self, wanted: tuple[LoadedSymbols, ...]) -> None:
        """Have symbols of `wanted` alone. The new come before the old go, so that GDB reads the file only once."""
        self._displays.save()
        self._program = program_path()
        self.moves += 1
        old = self._placed
        for loaded_symbols in wanted:
            command = "symbol-file" if loaded_symbols.is_main else "add-symbol-file"
            execute(f"{command} {quoted(loaded_symbols.path)} -o {loaded_symbols.bias:#x}")
            self._placed += (loaded_symbols,)
        self._remove(old)
        self._placed = wanted

    def _remove(self, placed: tuple[LoadedSymbols, ...]) -> None:
        """Of two places of a file GDB removes the one that it has had for longer."""
        for loaded_symbols in placed:
            if not loaded_symbols.is_main:  # those are replaced
                with suppress(DebuggerError):  # GDB may have dropped it by itself, with the process
                    execute(f"remove-symbol-file {quoted(loaded_symbols.path)}")
            if self._apart is not None:
                self._apart.drop(loaded_symbols.path)
                self._views_apart = {
                    key: view for key, view in self._views_apart.items() if view.path != loaded_symbols.path
                }

    def _tell_program(self, moment: ProcessView) -> None:
        if is_core():
            from gdbext.symbols.program import tell_program

            tell_program(moment.target, self._settings.object_path)

    def take_out(self, moment: ProcessView, inserted: bool) -> None:
        """Let GDB forget the originals' symbols; breakpoints in them are pending afterwards, and in no memory."""
        paths = copied_paths(moment)
        loaded = [objfile for objfile in gdb.objfiles() if is_from_file(objfile) and objfile.owner is None]
        for one in gdb.objfiles():
            if one.owner is not None and path_in_target(one.owner) in paths:
                self._debug_files[path_in_target(one.owner)] = path_here(one)
        if any(path_in_target(objfile) in paths for objfile in loaded):
            self._displays.save()
            self._kernel_library = kernel_library() or self._kernel_library
            stay = [objfile for objfile in loaded if path_in_target(objfile) not in paths]
            keep, files = kept_names(stay, paths), library_files(stay)
            forget_libraries(keep, files, self._kernel_library, inserted or always_inserted())
            self._late_libraries.watch(paths)
        self._out, self._is_back = self._out | paths, False


def is_from_file(objfile: gdb.Objfile) -> bool:
    """Whether GDB has read it from a file, and not from memory; GDB 12 does not tell, and names what is from memory."""
    return bool(getattr(objfile, "is_file", not path_of(objfile).startswith(KERNEL_LIBRARY)))


def code_of(path: str) -> int:
    """The p_vaddr of an instruction in a file, by which GDB tells two places of it apart."""
    with open_elf(path) as file:
        return next(section.address for section in file.sections if section.flags & SHF_EXECINSTR)


def always_inserted() -> bool:
    """Whether GDB leaves breakpoints in memory while the target is stopped."""
    return bool(gdb.parameter("breakpoint always-inserted")) or bool(gdb.parameter("non-stop"))


def copied(moment: ProcessView) -> tuple[Object, ...]:
    """Return the objects of which ranks have copies."""
    return tuple(
        elf_object for elf_object in moment.table.objects if elf_object.privatized and elf_object.path.startswith("/")
    )


def program_path() -> str:
    """The file that GDB has loaded as the program, "" if there is none."""
    space = gdb.current_progspace()
    return path_of(space) if space is not None else ""


def is_of_new_program(objfile: gdb.Objfile) -> bool:
    """Whether GDB has read it because the process executes another program: by then it has forgotten all libraries.

    Of a program that a fork copies it has forgotten none, but reads it for a space that is new, before these.
    """
    space = objfile.progspace
    if space != gdb.selected_inferior().progspace or path_of(objfile) != program_path() or is_core():
        return False
    is_new = len(gdb.inferiors()) > 1 and space.objfiles() == [objfile]
    return not is_new and not is_any_read()


def is_main_program(elf_object: Object) -> bool:
    """Whether GDB has loaded it as the program itself: then it does not look into another file for its variables."""
    program = program_path()
    return bool(program) and os.path.basename(program) == os.path.basename(elf_object.path)


def is_elsewhere(moment: ProcessView, rank: int) -> bool:
    """Whether the rank's memory is another process's than GDB is attached to."""
    return isinstance(in_address_space(moment.target, moment.rank(rank).pages_of), Absent)


def has_copy(moment: ProcessView, number: int, rank: int) -> bool:
    """Whether a rank has its own copy of the object of a number."""
    return any(
        isinstance(placement, Rebase) and placement.object == number for placement in moment.rank(rank).placements
    )


def is_copying(moment: ProcessView) -> bool:
    """Whether ranks are still being made, so that the originals are about to be copied."""
    table = moment.table
    return not table.ranks or table.process_count > 1 or len(table.ranks) < table.rank_count


def copied_paths(moment: ProcessView) -> frozenset[str]:
    """The files of the copied objects, and those that GDB has loaded copies from."""
    return moment.copy_paths.union(elf_object.path for elf_object in copied(moment))


def bias_of(moment: ProcessView, elf_object: Object, rank: Optional[int]) -> Optional[int]:
    """What to add to the object's p_vaddr's in a rank; None if it is not known where the rank has it."""
    if rank is None:
        return elf_object.load_bias
    base = data_place(moment.rank(rank), elf_object, elf_object.base)
    return elf_object.load_bias + base - elf_object.base if isinstance(base, int) else None
