"""``python -m dsa`` is the command ``dsa``."""

import sys

from dsa.cli import main

if __name__ == "__main__":
    sys.exit(main())
