"""`ranklens-gdb-path`, or `python3 -m gdbext` in the project's folder: prints the path of the file to source in GDB.

Takes nothing. Imports nothing of GDB's, which is not there outside of it.
"""

from pathlib import Path


def main() -> None:
    print(Path(__file__).resolve().with_name("rank.py"))


if __name__ == "__main__":
    main()
