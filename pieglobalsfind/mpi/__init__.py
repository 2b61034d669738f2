"""The MPI call that a rank is in, read from its stack where its runtime publishes none."""
