"""Entry point of the command, which handles Ctrl-C before any other module is loaded."""

import sys

_INTERRUPTED = 130  # as `ExitCode`, which is not loaded yet


def main() -> None:
    """Run the command `privsweep`."""
    try:
        from flows.cli.app import main as command

        command()
    except KeyboardInterrupt:
        if sys.stderr is not None:  # the shell may have closed it
            sys.stderr.write("privsweep: Interrupted.\n")
        sys.exit(_INTERRUPTED)
