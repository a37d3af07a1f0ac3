"""`python -m perfkit`: the same program as the console script."""

import sys

from perfkit.bootstrap import main

if __name__ == "__main__":
    sys.exit(main())
