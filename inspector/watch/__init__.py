"""What `inspector watch` shows: looks at a running job again and again, and their rows on a screen."""
