"""Processes that may belong to a job: of another user, or with a registry that can't be trusted.

Takes the processes of a job that were found; gives a sentence for each other process of the same launch and
name, with the reason why nothing is known of it. It claims nothing of them.
"""

from __future__ import annotations

import pwd
from collections.abc import Collection, Iterator, Mapping
from typing import Optional

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import NotVirtualizedError, RanklensError, TargetEndedError
from pieglobalsfind.jobs.processes import HostProcess, ancestors, descendants, name_of, processes, user_of
from pieglobalsfind.targets import open_target


def doubtful(pids: Collection[int]) -> tuple[str, ...]:
    """A sentence for each, in the order of their pids."""
    by_pid = processes()
    starter = common_ancestor(pids, by_pid)
    if starter is None:
        return ()
    names = {name_of(pid) for pid in pids}
    alike = [
        descendant
        for descendant in descendants(starter, by_pid)
        if descendant not in pids and name_of(descendant) in names
    ]
    return tuple(sentence for process in sorted(alike) for sentence in said_of(process))


def common_ancestor(pids: Collection[int], by_pid: Mapping[int, HostProcess]) -> Optional[int]:
    """The nearest process above all of them."""
    chains = [list(ancestors(pid, by_pid)) for pid in pids]
    return (
        next((process for process in chains[0] if all(process in other for other in chains)), None) if chains else None
    )


def said_of(pid: int) -> Iterator[str]:
    """Nothing of a process that is known to belong to another job, or to none."""
    try:
        decode(open_target(pid=pid))
    except (NotVirtualizedError, TargetEndedError):
        return
    except RanklensError as error:
        if not name_of(pid):
            return  # it has ended meanwhile
        yield f"process {pid} of user {_user_name(user_of(pid))} may be a missing one: {error.sentence}"


def _user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
