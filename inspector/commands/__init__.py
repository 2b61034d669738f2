"""One module for each subcommand, which declares its options and runs it.

It may import every other folder of the inspector.
"""

from __future__ import annotations

# by its name: the module that declares and runs it, and what it is for
COMMANDS = {
    "report": ("report", "a verdict, ranks, globals by value, pointer check, payload"),
    "ranks": ("report_parts", "each rank's state, where it blocks, its processing element, switches and memory"),
    "globals": ("globals", "every global's value on every rank, equal values together"),
    "pointers": ("report_parts", "pointers that the runtime rewrote wrongly or missed, in each copy, heap and stack"),
    "payload": ("report_parts", "what would move with each rank, by category"),
    "audit": ("audit", "a program's variables, and how it would fare under each method"),
    "snapshot": ("snapshot", "keep a job's ranks and memory in one file"),
    "stacks": ("stacks", "where all ranks are, without a debugger"),
    "waits": ("waits", "which rank waits for which: cycles, and ranks that have not entered a collective"),
    "load": ("load", "which rank is slow: times of ranks and processing elements, messages, and balance"),
    "why-different": ("why_different", "where two ranks' stacks part, and the globals in which they differ"),
    "merge": ("merge", "one table of stacks or reports of several processes or moments"),
    "perfmap": ("perfmap", "let Linux perf name functions in ranks' copies"),
    "record": ("record", "samples of all ranks' stacks over a time, and how long each rank was in which MPI call"),
    "events": ("events", "creations, migrations and exits of ranks, as they happen"),
    "watch": ("watch", "a live view of states, stacks, globals that differ and payload"),
    "schema": ("schema", "the form of the JSON that a command prints, as JSON Schema"),
    "serve": ("serve", "every rank as a process, for any debugger, without an extension"),
    "mpir": ("mpir", "publish a job's processes to parallel debuggers by the MPIR interface"),
}
