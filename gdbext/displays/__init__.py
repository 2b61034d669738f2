"""Users' displays, each evaluated in the rank that has stopped."""
