"""Analyses as tables, HTML, screens and traces."""
