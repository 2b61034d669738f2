"""Linkage names as their languages write them: C++ by the C++ library's own demangler, Fortran module procedures.

Takes a linkage name; gives the name itself where it is not mangled, or where this machine has no libstdc++.
"""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from typing import Callable, Optional

_MODULE_PROCEDURE = re.compile(r"__([a-z]\w*?)_MOD_(\w+)")


@lru_cache(maxsize=1)
def _demangler() -> Optional[Callable[[bytes], Optional[bytes]]]:
    """__cxa_demangle (Itanium C++ ABI, 3.4) after a function that frees what it returns."""
    try:
        library, libc = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
        function, free = library.__cxa_demangle, libc.free
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    free.argtypes, free.restype = (ctypes.c_void_p,), None

    def call(name: bytes) -> Optional[bytes]:
        pointer = function(name, None, None, None)
        if not pointer:
            return None
        try:
            return ctypes.string_at(pointer)
        finally:
            free(pointer)

    return call


@lru_cache(maxsize=65536)
def demangle(name: str) -> str:
    """`_ZN3app3runEv` -> `app::run()`; `__solver_MOD_step` (gfortran) -> `solver::step`; others as they are."""
    if name.startswith("_Z") and len(name) < 4096:
        call = _demangler()
        demangled = call(name.encode()) if call else None
        return demangled.decode("utf-8", "replace") if demangled else name
    module = _MODULE_PROCEDURE.fullmatch(name)
    return f"{module.group(1)}::{module.group(2)}" if module else name


def without_result(name: str) -> str:
    """Linkage names of templates' instances tell the result's type first: `double a::f<int>` is `a::f<int>`."""
    if not name.endswith(">") or "operator" in name:
        return name
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += {">": 1, ")": 1, "<": -1, "(": -1}.get(name[at], 0)
        if depth == 0 and name[at] == " ":
            return name[at + 1 :]
    return name
