"""Coverage-guided fuzzing of what decodes targets and files: `make fuzz`, docs/development.md."""
