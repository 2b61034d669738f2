"""Modules that give LLDB a rank's symbols.

It imports `lldb_api`.
"""
