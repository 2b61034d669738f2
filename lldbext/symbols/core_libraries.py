"""Adds the libraries of a core file's process, where LLDB was given another file as the program.

Takes LLDB's target. What `rankcc` makes is a library to the process, and has no list of others: with `target create
solver --core core` LLDB would know neither the MPI library nor libc, and every stack would end in them. Adds the files
that the core file names, if their build-ids are those in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.elf.locate import identity_by_headers, object_path
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.model import Absent
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.targets.core import CoreTarget


def add_missing(target: Any, moment: ProcessView) -> None:
    """Costs nothing where LLDB has found the libraries by itself, as it does in every other case."""
    if not isinstance(moment.target, CoreTarget):
        return
    loaded = {str(module.file.fullpath) for module in target.modules if not str(module.file.fullpath).startswith("[")}
    copied = moment.copy_paths.union(elf_object.path for elf_object in moment.table.objects if elf_object.privatized)
    if not loaded <= copied:
        return
    for path, bias in files_of(moment, copied):
        module = target.AddModule(path, None, None)
        if module.IsValid():
            target.SetModuleLoadAddress(module, bias)


def files_of(moment: ProcessView, besides: frozenset[str]) -> Iterator[tuple[str, int]]:
    """The ELF files that the process had loaded, and what was added to their addresses."""
    for mapping in moment.target.maps():
        if mapping.offset or not mapping.path.startswith("/") or mapping.path in besides:
            continue
        with suppress(RanklensError):  # no ELF file
            loaded = LoadedElf(moment.target.read, mapping.start)
            identity = identity_by_headers(mapping.path, loaded.build_id, loaded.program_headers)
            place = object_path(moment.target, identity)
            if loaded.is_laid_out(mapping.end - mapping.start) and not isinstance(place, Absent):
                yield place, loaded.load_bias
