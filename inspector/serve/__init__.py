"""A server of GDB's Remote Serial Protocol: every rank is a process, for any debugger.

It imports `job` and below; `inspector serve` alone uses it.
"""
