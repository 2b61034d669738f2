"""Modules that give LLDB a rank's symbols.

It imports `threads` and `lldb_api`.
"""
