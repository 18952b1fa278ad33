"""`python -m flows.cli` is the command `privsweep`."""

from flows.cli.entry import main

if __name__ == "__main__":
    main()
