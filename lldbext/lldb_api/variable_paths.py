"""The variable that a path such as `node.next->number` means in a frame, without LLDB's compiler.

Takes a frame and a path; gives LLDB's value. For a name LLDB takes a global variable here before a member of the object
that the function is called for, unlike C++ and LLDB's own expressions.
"""

from __future__ import annotations

import re
from typing import Any

import lldb

PATH = re.compile(r"(?P<operators>[*&]*)(?P<name>[A-Za-z_]\w*)(?P<parts>[.\[-].*)?")
STATIC = (lldb.eValueTypeVariableGlobal, lldb.eValueTypeVariableStatic)


def variable_at_path(frame: Any, expression: str) -> Any:
    """Return the value; one that is not valid, or fails, if there is no such variable."""
    path = PATH.fullmatch(expression)
    if path is not None and _is_hidden(frame, path["name"]):
        expression = f"{path['operators']}this->{path['name']}{path['parts'] or ''}"
    return frame.GetValueForVariablePath(expression)


def is_found(value: Any) -> bool:
    """Whether there is such a variable."""
    return bool(value.IsValid() and value.GetError().Success())


def _is_hidden(frame: Any, name: str) -> bool:
    """Whether a member hides the variable outside all functions that LLDB finds."""
    if frame.GetValueForVariablePath(name).GetValueType() not in STATIC:
        return False
    if not is_found(frame.GetValueForVariablePath(f"this->{name}")):
        return False
    target, block = frame.GetThread().GetProcess().GetTarget(), frame.GetBlock()
    while block.IsValid():
        if any(variable.GetName() == name for variable in block.GetVariables(target, True, True, True)):
            return False  # the function's own static variable
        block = block.GetParent()
    return True
