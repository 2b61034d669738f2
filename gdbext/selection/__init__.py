"""Which rank GDB's own commands mean, and how a command visits other ranks."""
