"""What users source in GDB: `source gdbext/rank.py`.

Takes GDB's Python; puts the project's root on `sys.path` and switches the extension on, once. GDB runs this file among
the user's own names, so it leaves none behind.
"""


def _ranklens() -> None:
    import importlib.util
    import sys
    from pathlib import Path

    import gdb

    oldest = (12, 1)
    numbers = ["".join(filter(str.isdigit, part)) for part in gdb.VERSION.split(".")[:2]]
    if tuple(int(number or 0) for number in numbers) < oldest or sys.version_info < (3, 9):
        print(f"ranklens needs GDB 12.1 or newer with Python 3.9 or newer; this is GDB {gdb.VERSION}")
        return
    # Not __file__: in a script that sources this one it is the script's.
    folder = Path(sys._getframe().f_code.co_filename).resolve().parent
    root = str(folder.parent)
    if root not in sys.path:
        sys.path.append(root)
    if folder.name != "gdbext" and "gdbext" not in sys.modules:  # pip installs it under a name of ours
        spec = importlib.util.spec_from_file_location("gdbext", folder / "__init__.py")
        assert spec is not None
        sys.modules["gdbext"] = importlib.util.module_from_spec(spec)
    from gdbext import extension

    extension.switch_on()


_ranklens()
globals().pop("_ranklens", None)  # gone already where the extension's own start has GDB read this file again
