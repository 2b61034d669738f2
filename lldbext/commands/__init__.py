"""Commands, bound to LLDB, and LLDB's own commands where ranks change what they mean.

It may import every other folder of this extension.
"""
