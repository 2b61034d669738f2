"""Ranks' threads in LLDB: their numbers, the kernel threads below them, breakpoints for one thread."""
