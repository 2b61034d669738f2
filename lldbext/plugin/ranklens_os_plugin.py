"""The file that `target.process.python-os-plugin-path` names: LLDB takes the class of this name from it.

LLDB imports it by its bare name and puts its folder on `sys.path`; it has a folder of its own so that nothing else of
ours becomes a top-level module by that. What it does stands in `lldbext.stops.thread_list`.
"""

from __future__ import annotations

from lldbext.stops.thread_list import OperatingSystemPlugIn

__all__ = ["OperatingSystemPlugIn"]
