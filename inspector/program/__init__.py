"""What a program's file says: its dynamic section, and what its code does with its variables.

It reads no process.
"""
