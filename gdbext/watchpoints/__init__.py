"""Users' watchpoints, each kept with the rank in which it was set."""
