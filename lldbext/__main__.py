"""`ranklens-lldb-path`, or `python3 -m lldbext` in the project's folder: prints the path to import in LLDB.

Takes nothing. Imports nothing of LLDB's, which is not there outside of it.
"""

from pathlib import Path


def main() -> None:
    print(Path(__file__).resolve().parent)


if __name__ == "__main__":
    main()
