"""What the life of breakpoints has of one inferior, and forgets with its process."""

from __future__ import annotations

from gdbext.breakpoints.hidden_runtime import HiddenRuntime
from gdbext.breakpoints.inferior_followers import InferiorFollowers
from gdbext.breakpoints.runtime_calls import RuntimeCalls


class InferiorBreakpoints:
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
