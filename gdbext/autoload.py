"""Installed as librankmpi.so-gdb.py: GDB runs it when it loads the library, where `auto-load safe-path` allows.

Takes GDB's Python; sources the extension of the tree that the library was built in, if that is still there.
"""


def _ranklens_autoload() -> None:
    from pathlib import Path

    import gdb

    library = gdb.current_objfile()
    if library is None or not library.filename:
        return
    script = Path(library.filename).resolve().parents[3] / "gdbext" / "rank.py"
    if script.is_file():
        gdb.execute(f"source {script}")


_ranklens_autoload()
del _ranklens_autoload
