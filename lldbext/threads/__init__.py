"""Ranks as threads of LLDB.

It imports `lldb_api` and `selection`.
"""
