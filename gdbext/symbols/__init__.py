"""Which rank's symbols GDB has, and the views from which it reads them."""
