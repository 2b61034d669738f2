"""From bytes of variables to text, by their types, and from addresses to the names that ranks have for them."""
