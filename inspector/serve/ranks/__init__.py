"""Ranks as the processes that a debugger is shown: memory, registers, libraries, thread-local storage.

It imports `job` and below, and knows no packet.
"""
