"""Every command of the debuggers, in the order in which help lists them.

What a command does stands in a module of its own, named after it and imported when the command is first given:
debuggers start the sooner.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from pieglobalsfind.debugger.declare import Block, Command, Debugger, Run
from pieglobalsfind.ranks.rankset import HINT


def late(module: str, function: str = "run") -> Run:
    """What a command does, by the module of this package that has it."""

    def run(debugger: Debugger, text: str) -> Iterator[Block]:
        run: Run = getattr(import_module(f"{__name__}.{module}"), function)
        return run(debugger, text)

    return run


COMMANDS: tuple[Command, ...] = (
    Command(
        name="rank",
        arguments="[N]",
        summary="Select a virtual rank, or show which one is selected and why.",
        description="After `rank N` the debugger's own commands mean that rank, whether it runs or waits: bt, up,\n"
        "down, and those that select frames, print variables and list source.\n"
        f"For sets of ranks {HINT}.",
        run=late("rank"),
        completes="ranks",
    ),
    Command(
        name="rank list",
        arguments="[SET] [--state STATE] [--all]",
        summary="List virtual ranks: state, where they run, what they wait for, innermost user function.",
        description="The selected rank is marked. Of more than 32 ranks those that do the same share a line, unless\n"
        f"--all asks for a line each. For SET {HINT}.",
        run=late("rank_list"),
        completes="ranks",
    ),
    Command(
        name="rank none",
        arguments="",
        summary="Select no rank: frames are those of a kernel thread.",
        description="",
        run=late("rank", "run_none"),
    ),
    Command(
        name="rank info",
        arguments="[N]",
        summary="Show what is known of a rank: copies, stack, heap, payload, saved registers, and how it was found.",
        description="Without N, of the selected rank.",
        run=late("rank_info"),
        completes="ranks",
    ),
    Command(
        name="rank bt",
        arguments="[SET] [full]",
        summary="Print the backtrace of the selected rank, or of a set of ranks.",
        description=f"With `full`, local variables too. For SET {HINT}.\n"
        "Without SET and with no rank selected: of all ranks.",
        run=late("rank_bt"),
        completes="ranks",
        aliases=("rank backtrace",),
    ),
    Command(
        name="rank tree",
        arguments="[SET]",
        summary="Show where all ranks are as one call tree, each call with its set of ranks.",
        description=f"Ranks in one function at different lines share its node. For SET {HINT}.",
        run=late("rank_tree"),
        completes="ranks",
    ),
    Command(
        name="rank print",
        arguments="[--nominal] [/FMT] EXPR [SET] | [--nominal] [/FMT] SET EXPR",
        summary="Print an expression in every rank, or in a set of ranks.",
        description="The expression means what it means in the rank's nearest user frame. Sets may follow or precede "
        "it:\nrank print counter 0-3, rank print counter 1 5, rank print 0-3 counter; "
        "`--` separates them when in doubt.\n"
        "--nominal reads a variable in the rank's own copy, also where its code uses another instance.\n"
        f"For SET {HINT}.",
        run=late("rank_print"),
        completes="expression",
    ),
    Command(
        name="rank diff",
        arguments="[--nominal] [/FMT] EXPR [SET] | [--nominal] [/FMT] SET EXPR",
        summary="Print an expression in every rank, ranks of equal value together: `0,2-7: 4`.",
        description="Arguments as for `rank print`; the value that most ranks have comes first.",
        run=late("rank_diff"),
        completes="expression",
    ),
    Command(
        name="rank find",
        arguments="VALUE [SET]",
        summary="Find the globals that hold a value, and on which ranks.",
        description="VALUE is a number. Elements and members are looked at too, of every type that can hold it.\n"
        f"For SET {HINT}.",
        run=late("rank_find"),
    ),
    Command(
        name="rank apply",
        arguments="SET [-q] [-c] [-s] COMMAND",
        summary="Apply a command to each of a set of ranks.",
        description="-q prints no headings, -c goes on after an error and prints it, -s goes on silently.\n"
        f"For SET {HINT}.",
        run=late("rank_apply"),
        completes="command",
    ),
    Command(
        name="rank where",
        arguments="[--nominal] ADDRESS|EXPRESSION",
        summary="Show which rank owns an address, and the same variable's address in every rank.",
        description="An expression of no pointer type means its own address: `rank where counter`.\n"
        "With --nominal: where each rank's own copy has it, also where its code uses another instance.",
        run=late("rank_where"),
        completes="expression",
    ),
    Command(
        name="rank context",
        arguments="fcontext|ucontext|jmp_buf ADDRESS | none",
        summary="Print the backtrace of a suspended user-level thread, by its saved context.",
        description="Needs no ranks. ADDRESS: a pointer's value, or any other expression's own address. Afterwards bt, "
        "up\nand info locals mean that thread in GDB, until the program goes on or `rank context none`.",
        run=late("rank_context"),
        completes="expression",
    ),
    Command(
        name="pieglobalsfind",
        arguments="ADDRESS|EXPRESSION",
        summary="Find the rank, object, symbol and source line that an address belongs to.",
        description="Never calls into the target, and works on core files. An expression of no pointer type means its "
        "own\naddress: `pieglobalsfind counter`, `pieglobalsfind $pc`, `pieglobalsfind 0x100001052952`.",
        run=late("pieglobalsfind"),
        completes="expression",
    ),
)
