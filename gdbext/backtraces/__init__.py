"""Backtraces of many ranks in GDB's own format, without selecting each.

It imports `selection` and what that may import.
"""
