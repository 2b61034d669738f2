"""`python3 -m gdbext`: prints the path of the file to source, for scripts and for ~/.gdbinit.

Takes nothing. Imports nothing of GDB's, which is not there outside of it.
"""

from pathlib import Path

print(Path(__file__).resolve().with_name("rank.py"))
