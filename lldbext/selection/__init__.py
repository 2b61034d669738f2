"""Which rank LLDB's own commands mean, and what is kept of a process between stops."""
