"""A server of GDB's Remote Serial Protocol: every rank is a process, for any debugger.

`inspector serve` alone uses it.
"""
