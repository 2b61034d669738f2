"""Analyses as tables, HTML, screens and traces.

It imports `analysis` and what that may import.
"""
