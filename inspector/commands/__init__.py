"""One module for each subcommand, which declares its options and runs it.

It may import every other folder of the inspector.
"""
