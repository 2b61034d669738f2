"""Users' breakpoints and our own: hit in every rank, copied into none."""
