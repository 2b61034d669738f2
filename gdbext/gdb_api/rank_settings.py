"""`set rank ...` and `show rank ...`: what users may choose about the extension.

Takes GDB's parameters; gives their values. Nothing is kept elsewhere.
"""

from __future__ import annotations

import gdb


class SetRank(gdb.Command):
    """Choose how ranks are shown, and where their files are found."""

    def __init__(self) -> None:
        super().__init__("set rank", gdb.COMMAND_DATA, prefix=True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Print the settings' help."""
        check_is_none("set rank", argument)
        gdb.execute("help set rank")


class ShowRank(gdb.Command):
    """Show what `set rank` has chosen."""

    def __init__(self) -> None:
        super().__init__("show rank", gdb.COMMAND_DATA, prefix=True)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Print every setting."""
        check_is_none("show rank", argument)
        for name in (FoldRuntime.name, ObjectPath.name):
            gdb.write(f"{name}:  ")
            gdb.execute(f"show rank {name}")


def check_is_none(prefix: str, argument: str) -> None:
    """In GDB's own words: there is no such setting."""
    if argument:
        word = argument.split()[0]
        raise gdb.GdbError(f'Undefined {prefix} command: "{word}".  Try "help {prefix}".')


class FoldRuntime(gdb.Parameter):
    """Leave the MPI runtime's own frames out of ranks' backtraces: what it does inside the call that the program made.

    Frames keep their numbers, so `frame N` and `down` still reach them.
    """

    name = "fold-runtime"
    set_doc = "Set whether the MPI runtime's own frames are left out of ranks' backtraces."
    show_doc = "Show whether the MPI runtime's own frames are left out of ranks' backtraces."

    def __init__(self) -> None:
        super().__init__(f"rank {self.name}", gdb.COMMAND_DATA, gdb.PARAM_BOOLEAN)
        self.value = True

    def get_set_string(self) -> str:
        """Apply the new value; GDB prints nothing."""
        gdb.invalidate_cached_frames()
        return ""

    def get_show_string(self, value: str) -> str:
        """Return the sentence that `show` prints."""
        return f"Folding of the runtime's frames is {value}."


class ObjectPath(gdb.Parameter):
    """Folders, separated by colons, in which files of the job are looked for that are not where they were.

    A file is taken only if its build-id is the one that the job runs.
    """

    name = "object-path"
    set_doc = "Set the search path for missing files of the job."
    show_doc = "Show the search path for missing files of the job."

    def __init__(self) -> None:
        super().__init__(f"rank {self.name}", gdb.COMMAND_DATA, gdb.PARAM_STRING)
        self.value = ""

    def get_set_string(self) -> str:
        """Apply the new value; GDB prints nothing."""
        return ""

    def get_show_string(self, value: str) -> str:
        """Return the sentence that `show` prints."""
        return f"The search path for missing files is {value or '(none)'}."


class Settings:
    """The settings of one GDB."""

    def __init__(self) -> None:
        SetRank()
        ShowRank()
        self._fold = FoldRuntime()
        self._object_path = ObjectPath()

    @property
    def folds_runtime(self) -> bool:
        """Return whether the runtime's frames are folded."""
        return bool(self._fold.value)

    @property
    def object_path(self) -> tuple[str, ...]:
        """Return the folders that are searched for files that are gone."""
        return tuple(folder for folder in str(self._object_path.value or "").split(":") if folder)
