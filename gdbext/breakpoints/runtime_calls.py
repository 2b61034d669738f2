"""Learns from breakpoints on AMPI's or SMPI's own functions what ranks do, where no hook reports events.

Sets breakpoints on these functions in one inferior, once its process is there; gives events as a hook would tell them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import gdb

from gdbext.selection.debugger import GdbDebugger
from pieglobalsfind.decoders.ampi import events as ampi_events
from pieglobalsfind.decoders.registry.layout import AFTER_COPIES
from pieglobalsfind.decoders.smpi import events as smpi_events
from pieglobalsfind.model import RankTable

if TYPE_CHECKING:  # imported when it is needed: sourcing the extension must be quick
    from gdbext.breakpoints.event_breakpoints import CallBreakpoint


class RuntimeCalls:
    """The watched functions of one inferior.

    `on_event` takes an event's kind and rank, and says whether GDB stops; `is_wanted` says whether events matter now;
    `followed` are the ranks that are known already.
    """

    def __init__(
        self,
        debugger: GdbDebugger,
        on_event: Callable[[int, int], bool],
        is_wanted: Callable[[], bool],
        followed: Callable[[], Collection[int]],
    ) -> None:
        self._debugger = debugger
        self._on_event = on_event
        self._is_wanted = is_wanted
        self._followed = followed
        self._calls = ampi_events.Calls()
        self._rounds = smpi_events.Rounds()
        self._breakpoints: list[CallBreakpoint] = []

    @property
    def are_watched(self) -> bool:
        """Whether there are breakpoints on them."""
        return bool(self._breakpoints)

    def forget(self) -> None:
        """The process is gone."""
        for call_breakpoint in self._breakpoints:
            if call_breakpoint.is_valid():
                call_breakpoint.delete()
        self._breakpoints.clear()

    def watch(self, inferior: gdb.Inferior) -> None:
        """Break on AMPI's or SMPI's functions, as soon as they are mapped in the inferior, which is selected."""
        from gdbext.breakpoints.event_breakpoints import CallBreakpoint, function_address, is_mapped

        places = [(name, function_address(name)) for name in ampi_events.FUNCTIONS]
        if all(address and is_mapped(inferior, address) for _, address in places):
            self._calls = ampi_events.Calls()
            self._breakpoints = [CallBreakpoint(name, address, self._on_call) for name, address in places]
            return
        address = function_address(smpi_events.ROUND)
        if address and is_mapped(inferior, address):
            self._rounds = smpi_events.Rounds()
            self._breakpoints = [CallBreakpoint(smpi_events.ROUND, address, self._on_round)]

    def _on_round(self, function: str, arguments: tuple[int, int, int]) -> bool:
        """SMPI: once all ranks have their copies, they are followed."""
        if self._rounds.begins():
            self._on_event(AFTER_COPIES, -1)
        if self._rounds.are_done:
            for call_breakpoint in self._breakpoints:
                call_breakpoint.enabled = False
        return False

    def _on_call(self, function: str, arguments: tuple[int, int, int]) -> bool:
        if not self._is_wanted():
            return False
        self._debugger.inferiors.forget_moment()

        def table() -> RankTable:
            return self._debugger.moment().table

        if function == ampi_events.ARRIVED:
            self._watch_return(arguments[2])
        target = self._debugger.moment().target
        event = self._calls.event(target, table, function, arguments, self._followed())
        return event is not None and self._on_event(*event)

    def _watch_return(self, pointer: int) -> None:
        """Break where a call returns to, at its first instruction: the word at the stack pointer."""
        from gdbext.breakpoints.event_breakpoints import CallBreakpoint

        if not any(call_breakpoint.function == ampi_events.RETURNED for call_breakpoint in self._breakpoints):
            address = int.from_bytes(gdb.selected_inferior().read_memory(pointer, 8), "little")
            self._breakpoints.append(CallBreakpoint(ampi_events.RETURNED, address, self._on_call))
