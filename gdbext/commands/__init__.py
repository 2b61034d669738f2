"""Commands, functions and refusals, bound to GDB.

It may import every other folder of this extension.
"""
