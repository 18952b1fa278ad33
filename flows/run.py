"""`python -m flows.run SWEEP.toml` is `privsweep run SWEEP.toml`."""

import sys

from flows.cli.app import run

if __name__ == "__main__":
    sys.exit(run(["run", *sys.argv[1:]]))
