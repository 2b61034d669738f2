"""A file that is written anew for each input, in memory if the system has /dev/shm; it goes with the process."""

from __future__ import annotations

import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
IN_MEMORY = str(MEMORY) if MEMORY.is_dir() else None  # where temporary files are made


class ScratchFile:
    """`path` is what readers open."""

    def __init__(self) -> None:
        self._file = tempfile.NamedTemporaryFile(dir=IN_MEMORY)  # noqa: SIM115
        self.path = self._file.name

    def write(self, content: bytes) -> str:
        """Let the file hold these bytes alone; its path."""
        self._file.seek(0)
        self._file.truncate()
        self._file.write(content)
        self._file.flush()
        return self.path
