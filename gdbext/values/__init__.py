"""The values of expressions in many ranks at once.

It imports `backtraces`, `gdb_api` and what they may import.
"""
