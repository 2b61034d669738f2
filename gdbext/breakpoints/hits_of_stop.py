"""The hits of followers that one stop is about, and what GDB would say of them."""

from __future__ import annotations

from typing import Optional

import gdb

from gdbext.breakpoints.follower_breakpoint import Hit
from gdbext.gdb_api.breakpoint_locations import TELLS_LOCATIONS
from gdbext.gdb_api.enable_counts import EnableCounts
from gdbext.gdb_api.front_end import speaks_mi
from gdbext.gdb_api.run_before_users_commands import output_of
from gdbext.gdb_api.run_commands import set_convenience

TELLS_HIT = TELLS_LOCATIONS  # both from GDB 13 on


class HitsOfStop:
    """Collected while GDB handles a stop, told once it has stopped."""

    def __init__(self, enable_counts: EnableCounts) -> None:
        self._enable_counts = enable_counts
        self._hits: list[Hit] = []

    def __bool__(self) -> bool:
        return bool(self._hits)

    def add(self, hit: Hit) -> None:
        """Note one more."""
        self._hits.append(hit)

    def clear(self) -> None:
        """Something runs again."""
        self._hits.clear()

    @property
    def reported(self) -> Optional[Hit]:
        """The hit that is reported, as GDB reports the first of several."""
        return next((hit for hit in self._hits if not hit.silent), self._hits[0] if self._hits else None)

    def set_variables(self) -> None:
        """Let `$_hit_bpnum` and `$_hit_locno` be about the user's breakpoint, and not about ours."""
        hit = self.reported
        if hit is not None and TELLS_HIT:
            set_convenience("_hit_bpnum", hit.number)
            set_convenience("_hit_locno", hit.location or 1)

    def tell(self) -> None:
        """After a stop: say what was hit, as GDB would, and do what GDB does with a breakpoint that was hit."""
        hit = self.reported
        if hit is not None and not hit.silent:
            kind = "Temporary breakpoint" if hit.temporary else "Breakpoint"
            where = output_of("frame").partition("  ")[2]
            who = "" if hit.rank is None else f"Rank {hit.rank} hit "
            number = f"{hit.number}.{hit.location}" if hit.location and TELLS_HIT else str(hit.number)
            gdb.write(f"\n{who}{kind} {number}" + ("\n" if speaks_mi() else f", {where}"))  # GDB tells it there
        hits, self._hits = self._hits, []
        for follower_hit in hits:
            if not follower_hit.user.is_valid():
                continue
            if follower_hit.temporary:
                follower_hit.user.delete()
            else:
                self._enable_counts.hit(follower_hit.user)
