"""Has GDB forget the inlined functions that it skips at a stop, before their symbols are removed: it would crash.

GDB keeps the inlined function's symbol for that, and goes on using it after the symbol's file has gone (GDB 13.1,
inline-frame.c: `skipped_symbols`): an internal error or a crash. It forgets it once the thread's pc is another one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Optional

import gdb

from gdbext.gdb_api.language import in_c
from gdbext.gdb_api.run_commands import DebuggerError, execute
from gdbext.gdb_api.target import is_selected

_stopped: list[gdb.InferiorThread] = []  # the threads whose stops GDB has reported


class PcWrite:
    """Whether a thread's pc is written here, which GDB reports as if the user had done it."""

    is_ours = False


def note_stop() -> None:
    """GDB reports a stop of the selected thread."""
    thread = gdb.selected_thread()
    if thread is not None:
        _stopped[:] = [stopped for stopped in _stopped if stopped.is_valid() and stopped.ptid != thread.ptid]
        _stopped.append(thread)


def forget() -> None:
    """Before symbols go: have GDB show the selected inferior's threads in the inlined functions instead."""
    here = gdb.selected_inferior().num
    threads = [
        stopped for stopped in _stopped if stopped.is_valid() and stopped.inferior.num == here and stopped.is_stopped()
    ]
    _stopped[:] = [stopped for stopped in _stopped if stopped not in threads]
    selected = gdb.selected_thread()
    for thread in threads:
        with suppress(gdb.error, DebuggerError, RuntimeError):  # a thread without registers or frames has no caller
            _forget(thread)
    if selected is not None and selected.is_valid() and not is_selected(selected):
        selected.switch()


def _forget(thread: gdb.InferiorThread) -> None:
    if not is_selected(thread):
        thread.switch()
    frame = gdb.newest_frame()
    if _function_block(gdb.block_for_pc(frame.pc())) == _function_block(frame.block()):
        return
    pc = frame.pc()
    frame.select()
    PcWrite.is_ours = True
    try:
        with in_c():
            try:
                execute(f"set variable $pc = {pc + 1:#x}")
                gdb.newest_frame().find_sal()  # GDB compares the pcs when it looks for a line
            finally:
                execute(f"set variable $pc = {pc:#x}")
    finally:
        PcWrite.is_ours = False


def _function_block(block: Optional[gdb.Block]) -> Optional[tuple[int, int, str]]:
    """The function that a block is of, inlined or not."""
    while block is not None:
        if block.function is not None:
            return block.start, block.end, block.function.name
        block = block.superblock
    return None
