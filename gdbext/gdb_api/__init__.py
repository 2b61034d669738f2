"""GDB made plain: its commands, inferiors, locations, hooks and settings as Python values.

It imports `pieglobalsfind` and no other folder of this extension.
"""
