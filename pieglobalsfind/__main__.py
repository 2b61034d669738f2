"""`python -m pieglobalsfind`."""

from pieglobalsfind.cli import main

raise SystemExit(main())
