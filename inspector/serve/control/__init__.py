"""A job whose ranks a debugger controls: breakpoints, watchpoints, and where ranks run and stop.

It imports `ranks`, and knows no packet.
"""
