"""GDB's own test suite as an oracle: each of its programs as a process, and in a rank."""
