"""Which symbol files GDB must load, and at which addresses, so that names mean a given rank.

Takes a rank (or none: then the original) and the process; gives what GDB must load, and why a file can't be used. Makes
a view of a file where the rank has variables that the file itself places elsewhere. Gives GDB no command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Optional, Union

from gdbext.gdb_api.rank_settings import Settings
from gdbext.gdb_api.target import is_core
from gdbext.symbols.object_placement import bias_of, copied, has_copy, is_copying, is_elsewhere, is_main_program
from pieglobalsfind.elf.locate import identity_of, object_path
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.model import MIGRATED_OUT, Absent, Object, Rank
from pieglobalsfind.ranks.variable_address import lies_apart, runs_original
from pieglobalsfind.session.process_view import ProcessView

if TYPE_CHECKING:  # what only some targets need is imported when it is needed: sourcing the extension must be quick
    from pieglobalsfind.debugger.patched_variable_locations import PatchedFiles
    from pieglobalsfind.ranks.preempted import Preempted


@dataclass(frozen=True)
class LoadedSymbols:
    """A file whose symbols GDB has at `bias` (what is added to p_vaddr's).

    `is_main`: in place of the main program's own, which GDB looks into before all others. `anchor`: the file's anchor
    (lookup_order.py), "" if it can have none.
    """

    path: str
    bias: int
    is_main: bool = False
    anchor: str = ""


@dataclass(frozen=True)
class Apartness:
    """What a file depends on that names the addresses of what lies apart on a rank: it serves as long as all is so.

    `owner` is what `what_lies_where` gives of the rank, None for the original.
    """

    plain: LoadedSymbols
    original: Object
    owner: Optional[tuple[object, ...]]
    elsewhere: bool
    of_original: bool


class WantedSymbols:
    """What GDB has to load for the symbols of one inferior to mean a rank.

    `main_program`: the path of the program in whose place GDB has symbols of ranks, "" if it has its own.
    `are_new`: whether files have been built anew since the last process.
    `debug_files`: where GDB had found an object's debug information, by the object's path.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.main_program = ""
        self.are_new = False
        self.debug_files: dict[str, str] = {}
        self._views_apart: dict[Apartness, LoadedSymbols] = {}
        self._files: dict[str, Union[str, Absent]] = {}
        self._files_before: dict[str, Union[str, Absent]] = {}
        self._objects: dict[str, str] = {}  # the objects' paths by those of their views
        self._patched_files: Optional[PatchedFiles] = None
        self._preempted: dict[Object, tuple[Preempted, ...]] = {}

    @property
    def files_of_views(self) -> Mapping[str, str]:
        """The users' files, by the paths of what GDB has their symbols from."""
        return self._objects

    def forget(self) -> None:
        """Forget the files: they may have been built anew."""
        self._files_before, self._files = self._files or self._files_before, {}
        self._preempted.clear()
        self.debug_files.clear()

    def inherit(self, parent: WantedSymbols) -> None:
        """Know the files of the process that this one was forked from."""
        self._files, self._objects = dict(parent._files), dict(parent._objects)

    def drop(self, path: str) -> None:
        """Remove the view at `path`, if it is one that was made for a rank: GDB has forgotten it."""
        if self._patched_files is not None:
            self._patched_files.drop(path)
            self._views_apart = {key: view for key, view in self._views_apart.items() if view.path != path}

    def of(self, moment: ProcessView, rank: Optional[int]) -> tuple[tuple[LoadedSymbols, ...], tuple[str, ...]]:
        """Return the symbols that mean `rank`, or the original if None, and why files could not be used."""
        # What a breakpoint in the original writes there now would be copied into every rank.
        nowhere = rank is None and is_copying(moment)
        wanted, failures = [], []
        for elf_object in copied(moment):
            bias, file = None if nowhere else bias_of(moment, elf_object, rank), self._file(moment, elf_object)
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
                    wanted.append(self._anchored(elf_object, file, self._as_main(elf_object, file, view)))
                if rank is not None and runs_original(moment.rank(rank), elf_object):
                    # After the rank's own: GDB takes a static variable of the first file that has one of the name.
                    plain = LoadedSymbols(file, elf_object.load_bias)
                    original = self._view(moment, elf_object, rank, plain, of_original=True)
                    if not isinstance(original, Absent):
                        self._objects[original.path] = elf_object.path
                        wanted.append(original)
        return tuple(wanted), tuple(failures)

    def places(self, moment: ProcessView, rank: Optional[int]) -> tuple[LoadedSymbols, ...]:
        """Return where the files lie in a rank, without making any for it."""
        places = []
        for elf_object in copied(moment):
            bias, file = bias_of(moment, elf_object, rank), self._file(moment, elf_object)
            if isinstance(file, str) and bias is not None:
                places.append(self._anchored(elf_object, file, LoadedSymbols(file, bias)))
        return tuple(places)

    def _anchored(self, elf_object: Object, file: str, view: LoadedSymbols) -> LoadedSymbols:
        """With its anchor, which only views have: other files have no debug information."""
        if file == elf_object.path or view.is_main:
            return view
        from gdbext.symbols.views import anchor_of

        anchor = anchor_of(file)
        self._objects[anchor] = elf_object.path
        return replace(view, anchor=anchor)

    def _is_there(self, elf_object: Object, file: str, view: LoadedSymbols) -> bool:
        """Whether GDB has it as the main program already: at one address a second one answers, too."""
        is_plain = view.path == file and view.bias == elf_object.load_bias
        return is_plain and self.main_program != elf_object.path and is_main_program(elf_object)

    def _as_main(self, elf_object: Object, file: str, view: LoadedSymbols) -> LoadedSymbols:
        """Thread-local variables of the main program have to lie in what GDB takes for it, until it is gone."""
        if view.path != file and is_main_program(elf_object):
            self.main_program = elf_object.path
        return replace(view, is_main=bool(self.main_program) and self.main_program == elf_object.path)

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
        owner = None if rank is None else self._as_code_finds(moment, moment.rank(rank), elf_object, plain)
        elsewhere = rank is not None and is_elsewhere(moment, rank)
        lies_elsewhere = elf_object.tls_size > 0 if owner is None or of_original else lies_apart(owner, elf_object)
        if not elsewhere and not lies_elsewhere:
            return plain
        from pieglobalsfind.debugger import patched_variable_locations
        from pieglobalsfind.dwarf import variable_cache

        key = Apartness(plain, elf_object, what_lies_where(owner), elsewhere, of_original)
        if key not in self._views_apart:
            try:
                path = object_path(moment.target, identity_of(elf_object), self._settings.object_path)
                variables = variable_cache.declared(str(path), elf_object.build_id).variables
                self._patched_files = self._patched_files or patched_variable_locations.PatchedFiles(with_symbols=True)
                made = self._patched_files.view(
                    plain.path,
                    variables,
                    patched_variable_locations.Instance(owner, elf_object, elsewhere, of_original),
                    plain.bias,
                )
            except (OSError, ObjectFileError) as error:
                return Absent(f"variables of {elf_object.path} outside its copies can't be shown, {error}")
            self._views_apart = {**self._views_apart, key: LoadedSymbols(made, plain.bias)}
        return self._views_apart[key]

    def _as_code_finds(self, moment: ProcessView, rank: Rank, elf_object: Object, plain: LoadedSymbols) -> Rank:
        """The rank with the object's variables where the object's own code has them, be it in another one's copy."""
        objects = copied(moment)
        if len(objects) < 2 or plain.path == elf_object.path:  # without debug information GDB goes by names alone
            return rank
        from pieglobalsfind.ranks.preempted import preempted, with_preempted

        if elf_object not in self._preempted:
            self._preempted[elf_object] = preempted(moment.target, objects, elf_object)
        return with_preempted(rank, elf_object, self._preempted[elf_object])

    def _file(self, moment: ProcessView, elf_object: Object) -> Union[str, Absent]:
        if elf_object.path not in self._files or isinstance(self._files[elf_object.path], Absent):
            file = self._files[elf_object.path] = self._make_file(moment, elf_object)
            self.are_new = self.are_new or self._files_before.get(elf_object.path, file) != file
        return self._files[elf_object.path]

    def _make_file(self, moment: ProcessView, elf_object: Object) -> Union[str, Absent]:
        path = object_path(moment.target, identity_of(elf_object), self._settings.object_path)
        if isinstance(path, Absent):
            return Absent(path.reason, "name the folder that has it by `set rank object-path`")
        from gdbext.symbols import views

        try:
            return views.view_of(path, elf_object.build_id, self.debug_files.get(elf_object.path, ""))
        except ObjectFileError as error:
            return Absent(error.sentence, error.hint)


def what_lies_where(rank: Optional[Rank]) -> Optional[tuple[object, ...]]:
    """All of a rank that tells where it has its variables; None of no rank."""
    return None if rank is None else (rank.rank, rank.placements, rank.range, rank.state == MIGRATED_OUT)
