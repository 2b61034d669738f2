"""One module for each subcommand, which declares its options and runs it.

It may import every other folder of the inspector.
"""

from __future__ import annotations

# by its name: the module that declares and runs it, and what it is for
COMMANDS = {
    "report": ("report", "ranks, globals by value, pointer audit, payload"),
    "ranks": (
        "parts",
        "states, where ranks block, which processing element runs them, switches, memory by category",
    ),
    "globals": ("globals", "every global's value on every rank, equal values together"),
    "pointers": ("parts", "rewritten and forgotten pointers, in each copy, heap and stack"),
    "payload": ("parts", "what would move with each rank, by category"),
    "audit": ("audit", "a program's variables, and how it would fare under each method"),
    "snapshot": ("snapshot", "keep a job's ranks and memory in one file"),
    "stacks": ("stacks", "where all ranks are, without a debugger"),
    "waits": ("waits", "who waits for whom: cycles, and the ranks that a collective lacks"),
    "why-different": ("why_different", "where two ranks' stacks part, and the globals that they differ in"),
    "merge": ("merge", "stacks or reports of several processes or moments in one"),
    "perfmap": ("perfmap", "let Linux perf name functions in ranks' copies"),
    "record": ("record", "samples of all ranks' stacks over a time, and how long each rank was in which MPI call"),
    "events": ("events", "ranks that are created, migrate and exit, as it happens"),
    "watch": ("watch", "a live view of states, stacks, globals that differ and payload"),
    "schema": ("schema", "the form of the JSON that a command prints, as JSON Schema"),
    "mpir": ("mpir", "let a parallel debugger find a job's processes by this process, as MPIR has it"),
}
