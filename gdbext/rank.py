"""What users source in GDB: `source gdbext/rank.py`.

Takes GDB's Python; puts the project's root on `sys.path` and switches the extension on, once. GDB runs this file among
the user's own names, so it leaves none behind.
"""


def _ranklens() -> None:
    import gc
    import os
    import sys

    import gdb

    oldest = (12, 1)
    numbers = ["".join(filter(str.isdigit, part)) for part in gdb.VERSION.split(".")[:2]]
    if tuple(int(number or 0) for number in numbers) < oldest or sys.version_info < (3, 9):
        print(f"ranklens needs GDB 12.1 or newer with Python 3.9 or newer; this is GDB {gdb.VERSION}")
        return
    # Not __file__: in a script that sources this one it is the script's.
    root, folder = os.path.split(os.path.dirname(os.path.realpath(sys._getframe().f_code.co_filename)))
    if root not in sys.path:
        sys.path.append(root)
    if folder != "gdbext" and "gdbext" not in sys.modules:  # pip installs it under a name of ours
        import importlib.util

        spec = importlib.util.spec_from_file_location("gdbext", os.path.join(root, folder, "__init__.py"))
        assert spec is not None
        sys.modules["gdbext"] = importlib.util.module_from_spec(spec)
    was_collecting = gc.isenabled()
    gc.disable()  # what is imported and decoded here stays: to search it for garbage took 20 ms
    try:
        from gdbext import extension

        extension.switch_on()
    finally:
        if was_collecting:
            gc.enable()


_ranklens()
globals().pop("_ranklens", None)  # gone already where the extension's own start has GDB read this file again
