"""`rank where ADDRESS`: whose an address is, and where every rank has the same thing.

That is where the rank's code uses it; with --nominal, where the rank's own copy has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.debugger.commands.rank_print import without_nominal
from pieglobalsfind.debugger.declare import Block, Column, Debugger, Table, TextBlock
from pieglobalsfind.debugger.wording import owner_text
from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import Owner
from pieglobalsfind.ranks.rankset import ALL
from pieglobalsfind.ranks.variable_address import data_place, has_copy, nominal
from pieglobalsfind.session.job_view import JobView, counterpart
from pieglobalsfind.session.process_view import ProcessView

MOST_RANKS = 16  # rows that say where other ranks have it


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Show an address in every rank."""
    is_nominal, expression = without_nominal(text)
    if not expression:
        raise UsageError("no address is given", "for instance: rank where &counter")
    moment = debugger.moment()
    address = debugger.address(expression)
    owner = moment.translator.owner(address)
    yield TextBlock(f"{address:#x}: {owner_text(moment, owner)}")
    rows = tuple(instances(moment, debugger.job(), owner, is_nominal))
    if rows:
        yield Table((Column("rank", numeric=True), Column("address")), rows[:MOST_RANKS])
    if len(rows) > MOST_RANKS:
        yield TextBlock(f"and in {len(rows) - MOST_RANKS} more ranks")


def instances(moment: ProcessView, job: JobView, owner: Owner, is_nominal: bool) -> Iterator[tuple[str, str]]:
    """Where each rank that has a copy of the object has what lies at the owner's original address."""
    if owner.object is None or owner.kind == "tls":
        return
    for number in job.select(ALL, lambda _: ""):
        elf_object = counterpart(job.of(number), moment.table.objects[owner.object])
        if elf_object is None:
            continue
        rank = nominal(job.rank(number)) if is_nominal else job.rank(number)
        place = data_place(rank, elf_object, elf_object.base + owner.offset)
        if has_copy(rank, elf_object) and isinstance(place, int):
            yield str(number), f"{place:#x}"
