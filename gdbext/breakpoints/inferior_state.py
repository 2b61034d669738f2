"""What `lifecycle` keeps for each inferior until its process ends: followers, breakpoints in the runtime."""

from __future__ import annotations

from gdbext.breakpoints.inferior_followers import InferiorFollowers
from gdbext.breakpoints.runtime_calls import RuntimeCalls
from gdbext.breakpoints.runtime_hidden_by_sysroot import HiddenRuntime


class InferiorState:
    """What is kept of one inferior: followers, and the runtime's functions that tell of its ranks.

    `hidden`: these functions where GDB does not find the runtime's library.
    """

    def __init__(self, followers: InferiorFollowers, calls: RuntimeCalls, hidden: HiddenRuntime) -> None:
        self.followers = followers
        self.calls = calls
        self.hidden = hidden

    def forget(self) -> None:
        """The process is gone."""
        self.calls.forget()
        self.hidden.forget()
        self.followers.forget()
