"""Stacks of ranks: saved registers, frames, arguments, call trees.

It imports `ranks` and everything below; no debugger takes part.
"""
