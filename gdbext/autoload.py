"""Installed as librankmpi.so-gdb.py: GDB runs it when it loads the library, where `auto-load safe-path` allows.

Takes GDB's Python; sources the extension of the tree that the library was built in, if that is still there.
"""


def _ranklens_autoload() -> None:
    from pathlib import Path

    import gdb

    library = gdb.current_objfile()
    try:
        path = library.filename if library is not None else None
    except UnicodeDecodeError:
        print("ranklens lies in a folder whose name is not UTF-8, so GDB can't load it: source gdbext/rank.py yourself")
        return
    if not path:
        return
    script = Path(path).resolve().parents[3] / "gdbext" / "rank.py"
    if script.is_file():
        gdb.execute(f"source {script}")


_ranklens_autoload()
del _ranklens_autoload
