"""LLDB made plain: its commands, processes, registers and values as Python values.

It imports `pieglobalsfind` and no other folder of this extension.
"""
