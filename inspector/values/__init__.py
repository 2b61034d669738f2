"""What variables of ranks have in common and where their pointers are, by their types."""
