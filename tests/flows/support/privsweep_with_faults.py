"""The command `privsweep` with the faulty methods in its registry."""

import fatal_methods  # type: ignore[import-not-found]  # beside this file, on the path of the run
import faulty_methods  # type: ignore[import-not-found]

from privcore.registry import register

register(
    faulty_methods.Slow,
    faulty_methods.Large,
    faulty_methods.Filling,
    faulty_methods.Mixed,
    fatal_methods.Fatal,
)

if __name__ == "__main__":
    from flows.cli.app import main

    main()
