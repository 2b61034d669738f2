"""Where LLDB finds the symbols of a rank: modules of its own, placed at its copies, and never the original beside them.

Takes LLDB's target and a rank. LLDB takes one file for one module however often it is added, so every rank has a link
of its own to the object's file. LLDB's expressions mean the first module that has a name; the modules of the rank in
focus stand first therefore, and the originals' stand nowhere while there is one. LLDB reads each module's file again:
for ranks that are only looked at in passing there is one set of modules, the guests, that goes from rank to rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import lldb

from lldbext.lldb_api.own_breakpoints import unheard
from lldbext.symbols import core_libraries
from lldbext.symbols.link_folders import make_folder
from pieglobalsfind.debugger import patched_variable_locations
from pieglobalsfind.debugger.wording import ORIGINAL_IN_USE
from pieglobalsfind.dwarf import variable_cache
from pieglobalsfind.elf.locate import identity_of, object_path
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent, Object, Rank
from pieglobalsfind.ranks.variable_address import data_place, has_copy, runs_original
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.targets import in_address_space

GUESTS = "passing"  # the folder of their links


@dataclass(frozen=True)
class PlacedModule:
    """A module of LLDB's, and what is added to its file's addresses. `shared`: the code is other ranks' as well."""

    module: Any
    slide: int
    shared: bool = False


class Modules:
    """The modules of one process's ranks; `failures` says which files could not be used, and why."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self._folder: Optional[Path] = None
        self._patched_files = patched_variable_locations.PatchedFiles(make_folder)
        self._made: dict[tuple[int, int], Any] = {}  # by rank and object: LLDB keeps what it has read
        self._placed: dict[int, tuple[PlacedModule, ...]] = {}
        self._guests: dict[int, Any] = {}  # by object: the modules that go from rank to rank
        self._guest: tuple[PlacedModule, ...] = ()  # where they are now
        self._originals: dict[int, PlacedModule] = {}
        self._refused: set[int] = set()  # objects whose file is another one now; LLDB takes it for the original's
        self._executable = ""
        self._others: tuple[PlacedModule, ...] = ()
        self.focused: Optional[int] = None
        self._visited: Optional[int] = None
        self.failures: set[str] = set()

    @property
    def ranks(self) -> frozenset[int]:
        """The ranks whose code LLDB knows."""
        return frozenset(self._placed)

    def place(self, moment: ProcessView, rank: int, names: bool = False) -> None:
        """Let LLDB know the code of a rank; costs nothing when it does.

        `names`: its variables are asked for, so it needs its own modules also for objects that it shares with others.
        """
        if not self._made:
            core_libraries.add_missing(self._target, moment)
        wanted = tuple(self._wanted(moment, rank, names or rank in (self.focused, self._visited)))
        if any(runs_original(moment.rank(rank), elf_object) for elf_object in moment.table.objects):
            self.failures.add(ORIGINAL_IN_USE)
        if self._placed.get(rank) != wanted:
            self.drop(rank)
            self._put_in(wanted)
            self._placed[rank] = wanted

    def drop(self, rank: int) -> None:
        """The rank has left: nothing of it is where it was."""
        self._take_out(self._placed.pop(rank, ()))
        if self.focused == rank:
            self.focused = None

    def remove(self) -> None:
        """The process is gone: LLDB forgets its ranks' modules, and has the originals again."""
        for module in (*self._made.values(), *self._guests.values()):
            self._target.RemoveModule(module)
        with unheard(self._target):
            for placed_module in self._originals.values() if self.focused is not None else ():
                self._target.AddModule(placed_module.module)
        self._made, self._placed, self.focused, self._visited = {}, {}, None, None
        self._guests, self._guest = {}, ()

    def renew(self) -> None:
        """LLDB's loader may have taken modules out that a stub does not list: all are to be put in again."""
        self._take_out(placed_module for placed_modules in self._placed.values() for placed_module in placed_modules)
        self._placed, self.focused = {}, None

    def focus(self, moment: ProcessView, rank: Optional[int]) -> None:
        """Make names mean a rank's variables, or the originals' if None."""
        self.settle()
        if self.focused not in (None, rank):
            self._forget_shared(self.focused)
        if rank is not None:
            self.place(moment, rank, names=True)
            self._take_originals_out(moment, self._placed.get(rank, ()))
        if rank == self.focused:
            return
        rest = tuple(self._of_others(rank))
        self._take_others_out()
        self._take_out(rest)
        if rank is None:
            self._put_in(self._originals.values())
        self._put_in((*self._others, *rest))
        self.focused = rank

    def visit(self, moment: ProcessView, rank: int) -> None:
        """Make names mean a rank's variables until `settle`: for that while no other rank's modules are there.

        Going on to the next rank then costs the same, however many ranks there are.
        """
        guest = self._as_guest(moment, rank)
        if not guest:
            self.place(moment, rank, names=True)
        if rank == self._visited:
            return
        if self._visited is None:
            self._take_originals_out(moment, guest or self._placed.get(rank, ()))
            self._take_others_out()
            self._take_out(self._of_others(rank))
        elif guest and [placed_module.module for placed_module in guest] == [
            placed_module.module for placed_module in self._guest
        ]:
            self._move(guest)
            self._visited = rank
            return
        else:
            self._take_out((*self._others, *self._of_visited(self._visited)))
            self._forget_shared(self._visited)
            self._put_in(self._placed.get(rank, ()))
        self._put_in((*guest, *self._others))
        self._guest, self._visited = guest, rank

    def _as_guest(self, moment: ProcessView, rank: int) -> tuple[PlacedModule, ...]:
        """The guests at a rank's copies; nothing if it has modules, or can only be shown by some of its own."""
        image, objects = moment.rank(rank), moment.table.objects
        if rank in self._placed or any(self._lies_apart(moment, rank, elf_object) for elf_object in objects):
            return ()
        placed = []
        for elf_object in objects:
            slide = slide_in(image, elf_object)
            if slide is not None and has_copy(image, elf_object):
                module = self._guests.get(elf_object.index) or self._make(moment, rank, elf_object, GUESTS)
                if module is not None:
                    self._guests[elf_object.index] = module
                    placed.append(PlacedModule(module, slide))
        return tuple(placed)

    def _move(self, guest: tuple[PlacedModule, ...]) -> None:
        """Let the guests be at another rank's copies, where they stand in LLDB's list."""
        for placed_module in guest:
            self._target.ClearModuleLoadAddress(placed_module.module)
            self._target.SetModuleLoadAddress(placed_module.module, placed_module.slide)
        self._guest = guest

    def _of_visited(self, rank: int) -> tuple[PlacedModule, ...]:
        return (*self._guest, *self._placed.get(rank, ()))

    @property
    def is_visiting(self) -> bool:
        """Whether LLDB has one rank's modules alone for now."""
        return self._visited is not None

    def may_stay_for(self, rank: int) -> bool:
        """Whether the rank's modules are there without a visit."""
        return self._visited in (None, rank)

    def settle(self) -> None:
        """End visits: everything is where it was."""
        visited, self._visited = self._visited, None
        if visited is None:
            return
        self._take_out((*self._others, *self._of_visited(visited)))
        self._guest = ()
        if visited != self.focused:
            self._forget_shared(visited)
        first = self._originals.values() if self.focused is None else self._placed.get(self.focused, ())
        rest = (
            placed_module
            for number, placed_modules in self._placed.items()
            if number != self.focused
            for placed_module in placed_modules
        )
        self._put_in((*first, *self._others, *rest))

    def _forget_shared(self, rank: Optional[int]) -> None:
        """Two ranks' modules must not stand for one piece of code: frames would have names of either."""
        placed = self._placed.get(rank, ()) if rank is not None else ()
        if rank is not None and any(placed_module.shared for placed_module in placed):
            self._take_out(placed_module for placed_module in placed if placed_module.shared)
            self._placed[rank] = tuple(placed_module for placed_module in placed if not placed_module.shared)

    def _wanted(self, moment: ProcessView, rank: int, names: bool) -> list[PlacedModule]:
        placed = []
        for elf_object in moment.table.objects:
            slide, shared = slide_in(moment.rank(rank), elf_object), not has_copy(moment.rank(rank), elf_object)
            if slide is None or (shared and not (names and self._lies_apart(moment, rank, elf_object))):
                continue
            module = self._made.get((rank, elf_object.index)) or self._make(moment, rank, elf_object)
            if module is not None:
                self._made[rank, elf_object.index] = module
                placed.append(PlacedModule(module, slide, shared))
        return placed

    @staticmethod
    def _is_elsewhere(moment: ProcessView, rank: int) -> bool:
        return isinstance(in_address_space(moment.target, moment.rank(rank).address_space), Absent)

    def _lies_apart(self, moment: ProcessView, rank: int, elf_object: Object) -> bool:
        return patched_variable_locations.needs(moment.rank(rank), elf_object, self._is_elsewhere(moment, rank))

    def _make(self, moment: ProcessView, rank: int, elf_object: Object, folder: str = "") -> Any:
        path = object_path(moment.target, identity_of(elf_object))
        if isinstance(path, Absent):
            self.failures.add(f"ranks have no symbols of {elf_object.path}, {path.reason}: {path.hint}")
            self._refused.add(elf_object.index)
            return None
        try:
            file = self._link(folder, elf_object, path) if folder else self._file(moment, rank, elf_object, path)
        except (OSError, RanklensError) as error:
            self.failures.add(f"variables of {elf_object.path} outside its copies can't be shown, {error}")
            return None
        with unheard(self._target):
            module = self._target.AddModule(file, None, None)
        if not module.IsValid():
            self.failures.add(f"LLDB can't read {path}: ranks have no symbols of it")
            return None
        return module

    def _file(self, moment: ProcessView, rank: int, elf_object: Object, path: str) -> str:
        """A file of the rank's own: with its addresses where variables lie apart, else a link."""
        if self._lies_apart(moment, rank, elf_object):
            instance = patched_variable_locations.Instance(
                moment.rank(rank), elf_object, self._is_elsewhere(moment, rank)
            )
            variables = variable_cache.declared(path, elf_object.build_id).variables
            return self._patched_files.view(path, variables, instance, 0)  # LLDB moves no address that is in no section
        return self._link(f"rank{rank}", elf_object, path)

    def _link(self, folder: str, elf_object: Object, path: str) -> str:
        self._folder = self._folder or make_folder()
        link = self._folder / folder / str(elf_object.index) / Path(elf_object.path).name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(path)
        return str(link)

    def _take_originals_out(self, moment: ProcessView, instead: Iterable[PlacedModule]) -> None:
        """Each time: LLDB's loader brings an original in again when it reads the list of libraries again."""
        own = {placed_module.module.file.basename for placed_module in instead}
        hidden = (
            elf_object
            for elf_object in moment.table.objects
            if Path(elf_object.path).name in own or elf_object.index in self._refused
        )
        first = moment.table.ranks[:1]
        paths = {
            elf_object.path: elf_object
            for elf_object in hidden
            if elf_object.privatized and not any(runs_original(rank, elf_object) for rank in first)
        }
        slides: set[Optional[int]] = set()
        for module in self._target.modules:
            elf_object = paths.get(str(module.file.fullpath))
            if elf_object is not None:
                self._originals[elf_object.index] = PlacedModule(module, elf_object.load_bias)
            if elf_object is not None or str(module.file.fullpath) in moment.copy_paths:
                slides.add(slide_of(module, self._target))
                self._target.RemoveModule(module)
        for placed_module in (
            placed_module for placed_modules in self._placed.values() for placed_module in placed_modules
        ):
            if (
                placed_module.slide in slides
            ):  # LLDB has forgotten with that module what lies there, but not that this does
                self._target.ClearModuleLoadAddress(placed_module.module)
                self._target.SetModuleLoadAddress(placed_module.module, placed_module.slide)

    def _take_others_out(self) -> None:
        """No name of the MPI library, of libc or of the loader may come before the program's own.

        The executable stays: LLDB takes what is first for the file to run again.
        """
        self._executable = self._executable or str(self._target.GetExecutable().fullpath)
        ours = {
            str(placed_module.module.file.fullpath)
            for placed_modules in self._placed.values()
            for placed_module in placed_modules
        }
        others = []
        for module in self._target.modules:
            path = str(module.file.fullpath)
            if path not in ours and path != self._executable and not path.startswith("["):
                slide = slide_of(module, self._target)
                if slide is not None:
                    others.append(PlacedModule(module, slide))
        self._others = tuple(others)
        self._take_out(others)

    def _of_others(self, rank: Optional[int]) -> Iterator[PlacedModule]:
        return (module for number, modules in self._placed.items() if number != rank for module in modules)

    def _put_in(self, placed: Iterable[PlacedModule]) -> None:
        with unheard(self._target):
            for placed_module in placed:
                self._target.AddModule(placed_module.module)
                self._target.SetModuleLoadAddress(placed_module.module, placed_module.slide)

    def _take_out(self, placed: Iterable[PlacedModule]) -> None:
        for placed_module in placed:
            self._target.RemoveModule(placed_module.module)


def slide_in(rank: Rank, elf_object: Object) -> Optional[int]:
    """What is added to the file's addresses in a rank, None if the rank is in another process."""
    base = data_place(rank, elf_object, elf_object.base)
    return None if isinstance(base, Absent) else elf_object.load_bias + base - elf_object.base


def slide_of(module: Any, target: Any) -> Optional[int]:
    """What is added to the addresses of a module's file, None if it is not loaded."""
    for section in module.sections:
        address = section.GetLoadAddress(target)
        if address != lldb.LLDB_INVALID_ADDRESS:
            return int(address - section.GetFileAddress())
    return None
