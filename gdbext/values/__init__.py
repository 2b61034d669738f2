"""The values of expressions in many ranks at once.

It imports `gdb_api`.
"""
