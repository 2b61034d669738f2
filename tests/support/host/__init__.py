"""Runs a real debugger on a real job: the questions go in by a file, the answers come back by files."""
