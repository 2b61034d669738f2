"""The oracle: what GDB says of rank k must be what plain GDB says of process k of the same program under MPICH."""
