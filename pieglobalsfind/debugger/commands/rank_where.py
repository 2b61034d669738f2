"""`rank where ADDRESS`: whose an address is, and where the other ranks have the same thing."""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.debugger.declare import Block, Column, Debugger, Table, TextBlock
from pieglobalsfind.debugger.wording import owner_text
from pieglobalsfind.errors import UsageError
from pieglobalsfind.model import Owner, Rebase
from pieglobalsfind.ranks.rankset import ALL
from pieglobalsfind.session.job_view import JobView, counterpart
from pieglobalsfind.session.process_view import ProcessView

MOST_RANKS = 16  # rows that say where other ranks have it


def run(face: Debugger, text: str) -> Iterator[Block]:
    """Show an address in every rank."""
    if not text.strip():
        raise UsageError("no address is given", "for instance: rank where &counter")
    moment = face.moment()
    address = face.address(text.strip())
    owner = moment.translator.owner(address)
    yield TextBlock(f"{address:#x}: {owner_text(moment, owner)}")
    rows = tuple(instances(moment, face.job(), owner))
    if rows:
        yield Table((Column("rank", numeric=True), Column("address")), rows[:MOST_RANKS])
    if len(rows) > MOST_RANKS:
        yield TextBlock(f"and in {len(rows) - MOST_RANKS} more ranks")


def instances(moment: ProcessView, job: JobView, owner: Owner) -> Iterator[tuple[str, str]]:
    """Where each rank has what lies at the owner's original address."""
    if owner.object is None:
        return
    for number in job.select(ALL, lambda _: ""):
        elf_object = counterpart(job.of(number), moment.table.objects[owner.object])
        if elf_object is None:
            continue
        for placement in job.rank(number).placements:
            if isinstance(placement, Rebase) and placement.object == elf_object.index and owner.offset < placement.size:
                yield str(number), f"{placement.copy + owner.offset:#x}"
