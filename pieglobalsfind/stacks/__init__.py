"""Stacks of ranks: saved registers, frames, arguments, call trees.

No debugger takes part.
"""
