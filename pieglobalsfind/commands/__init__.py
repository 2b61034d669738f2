"""Every command of the debuggers, in the order in which help lists them. Each module is named after its command."""

from __future__ import annotations

from pieglobalsfind.command import Command
from pieglobalsfind.commands import (
    pieglobalsfind,
    rank,
    rank_apply,
    rank_bt,
    rank_context,
    rank_diff,
    rank_find,
    rank_info,
    rank_list,
    rank_print,
    rank_tree,
    rank_where,
)

COMMANDS: tuple[Command, ...] = (
    rank.COMMAND,
    rank_list.COMMAND,
    rank.NONE,
    rank_info.COMMAND,
    rank_bt.COMMAND,
    rank_tree.COMMAND,
    rank_print.COMMAND,
    rank_diff.COMMAND,
    rank_find.COMMAND,
    rank_apply.COMMAND,
    rank_where.COMMAND,
    rank_context.COMMAND,
    pieglobalsfind.COMMAND,
)
