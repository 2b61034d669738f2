"""Which variables are an MPI runtime's or a C or C++ library's own: AMPI links hundreds of its own into every program.

Takes variables as debug information describes them, and the file that has them; judges by where they are declared. What
is declared nowhere counts as the program's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pieglobalsfind.dwarf.types import Variable

# AMPI's pointers to its functions, which programs of -pieglobals and -pipglobals call through
SHIM = ("ampi_functions.h", "ampi_funcptr_shim.C", "pup_c_functions.h")
CHARM = re.compile(r"(/.+)/src/(?:ck-core|conv-core|libs/ck-libs/ampi)/[^/]+")  # a source of Charm++'s own tree
IOSTREAM = re.compile(r".*/include/c\+\+/.*iostream")  # each unit that includes it has std::__ioinit
# What each linker namespace has of its own (`-pipglobals`, Process-in-Process)
C_LIBRARY = re.compile(r"(?:libc|libm|libdl|librt|libpthread|libanl|ld-linux[^/]*|ld)(?:-[\d.]+)?\.so(?:\.\d+)?")


class RuntimeVariables:
    """The variables of one file."""

    def __init__(self, path: str, variables: Iterable[Variable]) -> None:
        """`path` is the file's, `variables` are all that it declares."""
        self._is_library = C_LIBRARY.fullmatch(path.rpartition("/")[2]) is not None
        matches = (CHARM.fullmatch(file) for file in {variable.file for variable in variables})
        roots = {re.escape(match[1]) for match in matches if match is not None}
        # Its examples and tests are programs of users.
        folders = r"(?:src|contrib|[^/]+/(?:include|tmp|hwloc-prefix))/"
        self._of_charm = re.compile(rf"(?:{'|'.join(sorted(roots))})/{folders}.*") if roots else None

    def __contains__(self, variable: object) -> bool:
        if not isinstance(variable, Variable):
            return False
        if self._is_library or variable.file.rpartition("/")[2] in SHIM or IOSTREAM.fullmatch(variable.file):
            return True
        return self._of_charm is not None and self._of_charm.match(variable.file) is not None
