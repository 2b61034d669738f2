"""What the code of a program's file does with its variables.

It imports `job` and `pieglobalsfind`, and reads no process.
"""
