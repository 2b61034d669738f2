"""What users import in LLDB: `command script import PATH/lldbext`, from any place.

Takes LLDB's Python; puts the project's root on `sys.path` and switches the extension on, once per debugger.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

OLDEST_PYTHON = (3, 9)


def __lldb_init_module(debugger: Any, internal_dict: dict[str, Any]) -> None:
    """LLDB calls this once it has imported the package."""
    if sys.version_info < OLDEST_PYTHON:
        print(f"ranklens needs Python 3.9 or newer; this LLDB has {sys.version.split()[0]}")
        return
    root = str(Path(__file__).resolve().parent.parent)
    if root not in sys.path:
        sys.path.append(root)
    if __name__ != "lldbext":  # pip installs it under a name of ours
        internal_dict["lldbext"] = sys.modules.setdefault("lldbext", sys.modules[__name__])
    from lldbext.lldb_api import bytecode_cache

    with bytecode_cache.kept():
        from lldbext import extension

        extension.switch_on(debugger)
