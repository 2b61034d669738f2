"""How often each rank has hit users' breakpoints: GDB counts only where it has put a breakpoint itself.

Takes hits as they happen; prints them by `$_rank_hits`, and after `info breakpoints` where several ranks have hit one,
or one that GDB does not count for. GDB's own count, which can only be set to 0, is taken over before
it is shown, unless GDB has counted all hits: what GDB does not know it shall not say.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Optional

import gdb

from gdbext.gdb_api import hooks
from gdbext.gdb_api.run_commands import sentences
from gdbext.gdb_api.typed_command import typed_numbers
from pieglobalsfind.errors import UsageError
from pieglobalsfind.ranks.rankset import compact

INFO_BREAKPOINTS = r"(?:server +)?i(?:nfo?)? +b\w*"
HOOKS = {"hook": "maintenance ranklens-take-hits", "hookpost": "maintenance ranklens-tell-hits"}


class Hits:
    """Of all breakpoints that stand in ranks' copies, by their numbers."""

    def __init__(self) -> None:
        self._by_rank: dict[int, Counter[Optional[int]]] = defaultdict(Counter)
        self._counted: dict[int, int] = {}  # GDB's count when it was looked at last
        self._users: dict[int, gdb.Breakpoint] = {}

    def add(self, number: int, rank: Optional[int]) -> None:
        """One hit that GDB does not count."""
        self._by_rank[number][rank] += 1

    def notice(self, user: gdb.Breakpoint, rank: Optional[int]) -> None:
        """Take over what GDB has counted since, on the rank whose place it knows."""
        self._users[user.number] = user
        now, before = int(user.hit_count), self._counted.get(user.number, 0)
        if now < before:  # the user has set it to 0
            self._by_rank[user.number].clear()
            before = 0
        if now > before:
            self._by_rank[user.number][rank] += now - before
        self._counted[user.number] = now

    def is_counted(self, user: gdb.Breakpoint) -> bool:
        """Whether GDB has counted a hit since it was looked at last."""
        return int(user.hit_count) > self._counted.get(user.number, 0)

    def look(self) -> None:
        """Notice which counts the user has set to 0: GDB has no event for it, and goes on to count from there."""
        for user in list(self._users.values()):
            if user.is_valid():
                self.notice(user, None)

    def take_over(self, users: Iterator[gdb.Breakpoint]) -> None:
        """Leave GDB's counts of these at 0 where ranks have hit them that GDB does not count."""
        for user in users:
            self.notice(user, None)
            if self.of(user.number) != int(user.hit_count):
                user.hit_count = 0
                self._counted[user.number] = 0

    def forget(self, number: int) -> None:
        """Drop the counts of a deleted breakpoint."""
        for numbers in (self._by_rank, self._counted, self._users):
            numbers.pop(number, None)

    def clear(self) -> None:
        """The program is run again, and GDB begins to count again."""
        self._by_rank.clear()
        self._counted.clear()

    def of(self, number: int, rank: Optional[int] = None) -> int:
        """How often a breakpoint was hit, by one rank or at all."""
        counts = self._by_rank.get(number, Counter())
        return sum(counts.values()) if rank is None else counts[rank]

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of breakpoints that some rank has hit."""
        return sorted(number for number in self._by_rank if self.of(number))

    @property
    def listed(self) -> list[int]:
        """Of those that GDB lists: what scripts have made internal it does not."""
        return [number for number in self.numbers if number > 0]

    def tell(self) -> None:
        """After `info breakpoints`: of those that GDB has listed, where it is known which the user has asked for."""
        asked = typed_numbers(INFO_BREAKPOINTS)
        for number in self.listed:
            if not self._is_in_table(number) and (asked is None or any(number in numbers for numbers in asked)):
                gdb.write(self.text(number) + "\n")

    def _is_in_table(self, number: int) -> bool:
        """Whether GDB itself has just listed all hits, which are of one rank."""
        user = self._users.get(number)
        is_counted = user is not None and user.is_valid() and int(user.hit_count) == self.of(number)
        return is_counted and sum(bool(count) for count in self._by_rank[number].values()) == 1

    def text(self, number: int) -> str:
        """`Breakpoint 1 already hit 9 times: 3 times each by ranks 0-1, 2 times by rank 3, once elsewhere`."""
        by_count: dict[int, list[int]] = defaultdict(list)
        for rank, count in self._by_rank[number].items():
            if rank is not None:
                by_count[count].append(rank)
        parts = [part(count, ranks) for count, ranks in sorted(by_count.items(), key=lambda item: (-item[0], item[1]))]
        elsewhere = self._by_rank[number][None]
        if elsewhere:
            parts.append(f"{times(elsewhere)} elsewhere")
        total = times(self.of(number))
        all_of_it = parts[0] if parts[0].startswith(total) else f"{total}: {', '.join(parts)}"
        return f"Breakpoint {number} already hit {all_of_it}"


def part(count: int, ranks: list[int]) -> str:
    """Return how often some ranks hit, as a sentence's part."""
    if len(ranks) == 1:
        return f"{times(count)} by rank {ranks[0]}"
    return f"{times(count)} each by ranks {compact(ranks)}"


def times(count: int) -> str:
    """Return a count in words."""
    return "once" if count == 1 else f"{count} times"


class RankHits(gdb.Function):
    """$_rank_hits(BREAKPOINT [, RANK]): how often a breakpoint was hit, by all ranks or by one."""

    def __init__(self, hits: Hits, users: Callable[[], Iterator[gdb.Breakpoint]]) -> None:
        super().__init__("_rank_hits")
        self._hits, self._users = hits, users

    def invoke(self, *args: gdb.Value) -> int:
        """Return how often a rank, or all ranks, hit a breakpoint."""
        with sentences():
            if len(args) not in (1, 2):
                raise UsageError(f"$_rank_hits(BREAKPOINT [, RANK]) takes one or two arguments, not {len(args)}")
            self._hits.look()
            number = int(args[0])
            followed = {user.number for user in self._users()}
            for gdb_breakpoint in gdb.breakpoints():
                if gdb_breakpoint.number == number:
                    if number not in followed:
                        if len(args) == 2 and gdb_breakpoint.hit_count:
                            raise UsageError(
                                f"GDB counts the hits of breakpoint {number} for all ranks, which share its code",
                                f"rank break LOCATION {int(args[1])} counts those of one rank",
                            )
                        return int(gdb_breakpoint.hit_count)
                    return self._hits.of(number, int(args[1]) if len(args) == 2 else None)
            raise UsageError(f"there is no breakpoint {number}")


def register(hits: Hits, users: Callable[[], Iterator[gdb.Breakpoint]]) -> None:
    """Make the function known to GDB."""
    RankHits(hits, users)


def bind(
    hits: Hits, users: Callable[[], Iterator[gdb.Breakpoint]], before: Callable[[], None], after: Callable[[], None]
) -> None:
    """Make them known to GDB; `users` are the breakpoints that followers stand for. A user's own hook is left alone.

    `before` and `after` are called around `info breakpoints`.
    """

    def take() -> None:
        hits.take_over(users())
        before()

    def tell() -> None:
        after()
        hits.tell()

    hooks.with_program(lambda: register(hits, users))
    hooks.Called(HOOKS["hook"], take)
    hooks.Called(HOOKS["hookpost"], tell)
    hooks.define({f"info {hook}-breakpoints": command for hook, command in HOOKS.items()})
