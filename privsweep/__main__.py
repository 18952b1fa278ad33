"""`python -m privsweep` is the command `privsweep`; like the command, it imports nothing from its folder."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the working folder, which `-m` puts there

from flows.cli.entry import main

if __name__ == "__main__":
    main()
