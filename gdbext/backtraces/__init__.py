"""Backtraces of many ranks in GDB's own format, without selecting each.

It imports `gdb_api`.
"""
