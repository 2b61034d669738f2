"""How ranks are found in a target: by its registry, by the runtime's own data, or by the ELF headers of their copies.

Takes a target; gives a `RankTable` whose evidence says which way it was. Nothing is ever called in the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Optional

from pieglobalsfind.decoders.registry.decode import decode as by_registry
from pieglobalsfind.decoders.running import with_running
from pieglobalsfind.errors import NotVirtualizedError, RanklensError
from pieglobalsfind.model import HOOK, RankTable
from pieglobalsfind.target import Target
from pieglobalsfind.targets import check_is_alive, check_is_same, cut_short


def decode(target: Target, runtime: str = "") -> RankTable:
    """The target's ranks, by the best way there is.

    `runtime`: the one by whose own data they were found a moment before, which is tried first. Raises
    `NotVirtualizedError` if there are none, `RegistryError` if there is a registry that can't be believed, and
    `TargetError` if that is because a process has become another program meanwhile.
    """
    try:
        return _decoded(target, runtime)
    except RanklensError:
        check_is_same(target)
        raise


def _decoded(target: Target, runtime: str) -> RankTable:
    table = _of_runtime(target, runtime) or by_registry(target) or _without_registry(target)
    if table is not None and table.evidence.tier == HOOK:
        from pieglobalsfind.decoders import hook  # late: debuggers start the sooner

        table = hook.completed(target, table)
    cut = cut_short(target)
    if table is None and cut:
        raise NotVirtualizedError(f"{cut}, and no virtual ranks are found in what is left", "write the core file again")
    if table is None:
        check_is_alive(target)
        raise NotVirtualizedError(
            f"{target.description} has no virtual ranks",
            "give the process of an AMPI, SMPI or PiP program, of rankrun, or of a runtime that has a registry",
        )
    if cut:
        table = replace(table, warnings=(*table.warnings, cut))
    return table if target.is_live else with_running(table, target.threads())


def _without_registry(target: Target) -> Optional[RankTable]:
    tables = (decoder(target) for decoder in _decoders())
    return next((table for table in tables if table is not None), None)


def _decoders() -> Iterator[Callable[[Target], Optional[RankTable]]]:
    """Those that need no registry, each imported when those before it have found nothing."""
    from pieglobalsfind.decoders.ampi.decode import decode as by_ampi

    yield by_ampi
    from pieglobalsfind.decoders.pip.decode import decode as by_pip

    yield by_pip
    from pieglobalsfind.decoders.smpi.decode import decode as by_smpi

    yield by_smpi
    from pieglobalsfind.decoders.elf_scan import decode as by_scan

    yield by_scan


def _of_runtime(target: Target, runtime: str) -> Optional[RankTable]:
    """By the data of one runtime alone; None if its name is not known here."""
    if not runtime:
        return None  # before the imports: most jobs have a registry
    if runtime == "AMPI":
        from pieglobalsfind.decoders.ampi.decode import decode as by_ampi

        return by_ampi(target)
    from pieglobalsfind.decoders.smpi import decode as smpi

    return smpi.decode(target) if runtime in (smpi.RUNTIME, smpi.WITHOUT_MPI) else None
