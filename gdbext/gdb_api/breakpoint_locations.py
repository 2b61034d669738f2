"""Locations of breakpoints in each inferior; which breakpoints are ours; and taking all out of memory for a moment.

Takes GDB's breakpoints; gives their locations: as GDB tells them from version 13 on, before that as it prints them.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Union

import gdb

from gdbext.gdb_api import enable_counts
from gdbext.gdb_api.run_commands import DebuggerError, execute, silently

IN_MEMORY = (gdb.BP_BREAKPOINT, gdb.BP_HARDWARE_BREAKPOINT)

every_breakpoint = gdb.breakpoints  # ours among them, which `hide_own` hides from scripts


class Own(gdb.Breakpoint):
    """One of the extension's, in no user's name or in one's."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Make none if GDB can't insert it at once: it would try again whenever something runs, which then can't."""
        try:
            super().__init__(*arguments, **options)
        except gdb.error:
            if self.is_valid():
                self.delete()
            raise


def hide_own() -> None:
    """Let `gdb.breakpoints()` give scripts what it would without us: they may delete all that they see."""

    @functools.wraps(every_breakpoint)
    def breakpoints() -> tuple[gdb.Breakpoint, ...]:
        return tuple(gdb_breakpoint for gdb_breakpoint in every_breakpoint() if not isinstance(gdb_breakpoint, Own))

    gdb.breakpoints = breakpoints


TELLS_LOCATIONS = hasattr(gdb.Breakpoint, "locations")
# 1.2  y  0x0000555555555130 in f at f.c:1 inf 1
PRINTED = r"(?m)^(-?\d+\.\d+) .*?\b([yn])-? +(0x[0-9a-f]+)\b.*?(?: inf (\d+(?:, \d+)*))?$"


class PrintedLocation:
    """A location that GDB has printed; `name` is its number in GDB's commands."""

    def __init__(self, name: str, enabled: bool, address: int, thread_groups: Sequence[int]) -> None:
        self._name = name
        self._enabled = enabled
        self.address = address
        self.thread_groups = list(thread_groups)

    @property
    def enabled(self) -> bool:
        """Return whether the location is enabled."""
        return self._enabled

    @enabled.setter
    def enabled(self, wanted: bool) -> None:
        with suppress(DebuggerError):  # there are no commands for internal breakpoints
            execute(f"{'enable' if wanted else 'disable'} {self._name}")
            self._enabled = wanted


INVALID = r"(?m)^\d+\.\d+ +N\* +(0x[0-9a-f]+)\b"

Location = Union["gdb.BreakpointLocation", PrintedLocation]


def locations_of(breakpoint: gdb.Breakpoint) -> Sequence[Location]:
    """Where a breakpoint stands; nowhere while it is pending."""
    if breakpoint.pending:
        return ()
    return breakpoint.locations if TELLS_LOCATIONS else printed_locations(breakpoint.number)


def printed_locations(number: int) -> list[PrintedLocation]:
    """Where the breakpoint of a number stands, by what GDB prints of it."""
    here = str(gdb.selected_inferior().num)
    return [
        PrintedLocation(name, enabled == "y", int(address, 16), [int(word) for word in (groups or here).split(", ")])
        for name, enabled, address, groups in re.findall(PRINTED, execute(f"maint info breakpoints {number}"))
    ]


def locations_in(breakpoint: gdb.Breakpoint, inferior: int) -> list[Location]:
    """Where a breakpoint stands in an inferior."""
    return [location for location in locations_of(breakpoint) if inferior in location.thread_groups]


def renew_condition(breakpoint: gdb.Breakpoint) -> None:
    """Enable the locations where GDB has found a breakpoint's condition invalid, if it is valid there now.

    As symbols move one file has its new place before the others, and GDB does not know their variables there. It would
    keep such a location disabled (`N*` in its list).

    Not by the command `condition`: inside a stop GDB comes to its prompt at an error of a command, be it caught here.
    """
    if not breakpoint.condition or breakpoint.pending or breakpoint.number < 0:
        return

    def renew() -> None:
        breakpoint.condition = breakpoint.condition

    if invalid_addresses(breakpoint):
        with suppress(DebuggerError):  # it is invalid everywhere
            silently(renew)


def invalid_addresses(breakpoint: gdb.Breakpoint) -> frozenset[int]:
    """Where GDB has disabled a breakpoint because its condition names what is not known there."""
    printed = execute(f"maint info breakpoints {breakpoint.number}")
    return frozenset(int(address, 16) for address in re.findall(INVALID, printed))


def disable_stubs(breakpoint: gdb.Breakpoint) -> None:
    """Disable the linker's stubs among a breakpoint's locations (`leaf(int)@plt`) where it has the function, too.

    In a shared object GDB takes both for C++ functions of that name, and each call would stop twice. Copies of code are
    shared objects; the same program as a process has no stub for a function of its own.
    """
    enabled = [location for location in locations_of(breakpoint) if location.enabled]
    stubs = [location for location in enabled if len(enabled) > 1 and is_stub(location.address)]
    for stub in stubs if len(stubs) < len(enabled) else ():
        stub.enabled = False


def is_stub(address: int) -> bool:
    """Return whether an entry of a procedure linkage table begins at an address, by what GDB calls it."""
    if gdb.find_pc_line(address).symtab is not None:
        return False
    return execute(f"output/a {address:#x}").endswith("@plt>")


def has_silent_commands(breakpoint: gdb.Breakpoint) -> bool:
    """Whether it stops without a word."""
    if not breakpoint.is_valid():
        return False
    return bool(breakpoint.silent) or (breakpoint.commands or "").split("\n")[0].strip() == "silent"


class Calls:
    """How many functions GDB is calling in the program: a call may stop at a breakpoint while another one waits."""

    running = 0

    @classmethod
    def note(cls, event: Any) -> None:
        """GDB begins a call, or has ended one."""
        cls.running = cls.running + 1 if isinstance(event, gdb.InferiorCallPreEvent) else max(0, cls.running - 1)

    @classmethod
    def forget(cls) -> None:
        """A prompt: a call that could not begin has no end. (That the program goes on GDB 18 reports of calls, too.)"""
        cls.running = 0


def forget_hit() -> bool:
    """Have GDB forget at which location of which breakpoint the selected thread has stopped; return whether it has.

    While symbols move a breakpoint has two locations, of the file's old place and its new one. GDB 13 no longer finds
    among them the one where it stopped, and warns of it at every command until the program goes on. It forgets at an
    `advance`, before it finds that there is no such place. In a call it would forget the call, too, and abort.
    """
    if Calls.running:
        return False
    with suppress(gdb.error):
        gdb.execute("advance *$_ranklens_is_nowhere()", to_string=True)
    return True


@contextmanager
def taken_out() -> Iterator[None]:
    """No breakpoint is in the selected inferior's memory inside; in others, which may run meanwhile, they stay."""
    gdb_breakpoints = [
        gdb_breakpoint
        for gdb_breakpoint in every_breakpoint()
        if gdb_breakpoint.enabled and gdb_breakpoint.type in IN_MEMORY
    ]
    number = gdb.selected_inferior().num
    if not any(inferior.pid and inferior.num != number for inferior in gdb.inferiors()):
        with disabled(gdb_breakpoints):
            yield
        return
    off = {
        gdb_breakpoint.number: {at.address for at in locations_in(gdb_breakpoint, number) if not at.enabled}
        - _refused[gdb_breakpoint.number, number]
        for gdb_breakpoint in gdb_breakpoints
    }
    switch(gdb_breakpoints, number, off, False)
    try:
        yield
    finally:
        switch([gdb_breakpoint for gdb_breakpoint in gdb_breakpoints if gdb_breakpoint.is_valid()], number, off, True)


@contextmanager
def disabled(gdb_breakpoints: list[gdb.Breakpoint]) -> Iterator[None]:
    """The breakpoints as such are disabled inside."""
    with enable_counts.kept(gdb_breakpoints):
        for gdb_breakpoint in gdb_breakpoints:
            gdb_breakpoint.enabled = False
        try:
            yield
        finally:
            for gdb_breakpoint in gdb_breakpoints:
                if gdb_breakpoint.is_valid():
                    with suppress(gdb.error):  # it is enabled, though it can't be inserted yet; GDB tries again
                        gdb_breakpoint.enabled = True


# Addresses where GDB has refused to enable breakpoints again, by breakpoint and inferior. GDB 14 does where a condition
# names what is not known at this moment; that may be known when symbols move again.
_refused: defaultdict[tuple[int, int], set[int]] = defaultdict(set)


def switch(gdb_breakpoints: list[gdb.Breakpoint], inferior: int, off: dict[int, set[int]], on: bool) -> None:
    """Enable or disable breakpoints in one inferior, but for the addresses where they are `off` anyway."""
    for gdb_breakpoint in gdb_breakpoints:
        refused = _refused[gdb_breakpoint.number, inferior]
        for location in locations_in(gdb_breakpoint, inferior):
            if location.address not in off[gdb_breakpoint.number] and bool(location.enabled) != on:
                refused.discard(location.address)
                try:
                    location.enabled = on
                except gdb.error:
                    refused.add(location.address)
