"""What GDB and LLDB share: how commands are declared, worded and rendered.

It imports no debugger.
"""
