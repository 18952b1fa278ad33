"""The command `privsweep`: every error is one sentence on standard error and an exit code.

Nothing heavy is imported here or by the modules of commands at their top: `--help` has to be fast.
"""

import atexit
import gc
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import typer
from typer.exceptions import TyperException

from flows.cli import (
    ask,
    audit,
    compare,
    figures,
    labels,
    maintenance,
    membership,
    page,
    reports,
    status,
    store,
    sweep,
    table,
    training,
)

MANY_OBJECTS = 50_000
"""New objects after which Python looks for garbage: imports make many, and that took a tenth of a start."""

COMMANDS: dict[str, Callable[..., None]] = {
    "plan": sweep.plan,
    "run": sweep.run,
    "status": status.status,
    "epsilon": training.epsilon,
    "noise": training.noise,
    "steps": training.steps_of,
    "compare": compare.compare,
    "ask": ask.ask,
    "methods": ask.methods,
    "lookup": store.lookup,
    "sql": store.sql,
    "export": store.export,
    "labels": labels.labels,
    "audit": audit.audit,
    "membership": membership.membership,
    "serve": page.serve,
    "verify": maintenance.verify,
    "repair": maintenance.repair,
    "compact": maintenance.compact,
    "gc": maintenance.gc,
}
REPORT: dict[str, Callable[..., None]] = {
    "sweep": reports.sweep,
    "compare-training": reports.compare_training,
    "compare-labels": reports.compare_labels,
    "compare-audits": reports.compare_audits,
    "compare-membership": reports.compare_membership,
    "figures": figures.figures,
}
OLD_REPORT: dict[str, Callable[..., None]] = {
    "label-figures": figures.of_paper("labels"),
    "audit-figures": figures.of_paper("auditing"),
    "membership-figures": figures.of_paper("membership"),
}
"""Earlier names of `report figures PAPER`, which still work and are not listed."""
TABLE: dict[str, Callable[..., None]] = {
    "publish": table.publish,
    "show": table.show,
    "import": table.import_,
    "diff": table.diff,
}
PAGE: dict[str, Callable[..., None]] = {"build": page.build}


def _group(
    commands: Mapping[str, Callable[..., None]],
    hidden: Mapping[str, Callable[..., None]] = MappingProxyType({}),
    **settings: Any,
) -> typer.Typer:
    """Return the group of these commands, in this order; hidden ones work and are not listed."""
    group = typer.Typer(**settings)
    for name, command in {**commands, **hidden}.items():
        group.command(name, hidden=name in hidden)(command)
    return group


app = _group(
    COMMANDS,
    name="privsweep",
    help="Sweeps of privacy numerics: grids of problems in, rigorous enclosures in Parquet out.",
    epilog="Exit codes: 0 done, 1 some points failed, 2 misuse, 3 nothing stored covers the question, "
    "4 a limit was hit, 5 Ray or Prefect is gone, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(
    _group(
        REPORT,
        OLD_REPORT,
        cls=reports.SweepGroup,
        help="What a store holds, to look at: `report SWEEP` for what came of a sweep, or one of these.",
        no_args_is_help=True,
    ),
    name="report",
)
app.add_typer(
    _group(TABLE, help="Lookup tables: all answers of a store in one versioned Parquet file."), name="table"
)
app.add_typer(
    _group(PAGE, help="A lookup page of what is stored, for browsers.", no_args_is_help=True), name="page"
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"privsweep {version('privsweep')}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Hold the options that stand before a command."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors have become a sentence on standard error.

    Args:
        arguments: What follows `privsweep`.

    Returns:
        An `ExitCode`; of an error, the one that its class declares.
    """
    try:
        command = typer.main.get_command(app)
        maintenance.allow_degraded(command)
        result = command.main(args=list(arguments), prog_name="privsweep", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough; nothing more can be written to it.
        sys.stdout = None
        return 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  a bug is raised again below
        code, sentence = _explain(error)
        return _fail(sentence, code)
    if not result:
        return 0
    from privcore import ExitCode

    code = ExitCode(result)  # of `typer.Exit`, which Typer has already made of a KeyboardInterrupt
    return _fail("Interrupted.", code) if code is ExitCode.INTERRUPTED else code


def _explain(error: BaseException) -> tuple[int, str]:
    """Return exit code and sentence for an error; one that nobody raised on purpose is raised again."""
    from privcore import ExitCode, PrivsweepError

    match error:
        case PrivsweepError():
            return error.exit_code, str(error)
        case TyperException():
            return ExitCode.MISUSE, error.format_message()
        case KeyboardInterrupt():
            return ExitCode.INTERRUPTED, "Interrupted."
        case OSError(strerror=str() as what):
            return ExitCode.MISUSE, f"{error.filename}: {what}." if error.filename else f"{what}."
    raise error


def _fail(sentence: str, code: int) -> int:
    """Print one sentence to standard error; return the code."""
    if sentence:
        from storage.located import shown

        print(f"privsweep: {' '.join(shown(sentence).split())}", file=sys.stderr)
    return code


def main() -> None:
    """Entry point of the console script."""
    for name in ("stdin", "stdout", "stderr"):  # in the order of their numbers, which the next file would get
        if getattr(sys, name) is None:  # the shell closed it, as in `>&-`
            setattr(sys, name, Path(os.devnull).open("r+"))  # noqa: SIM115
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as Ray's workers have: else last bits of sums differ
    gc.set_threshold(MANY_OBJECTS)
    _leave(run(sys.argv[1:]))


def _leave(code: int) -> NoReturn:
    """End the process, at once where nothing else goes on in it.

    Taking a thousand modules apart is a sixth of a lookup, and gives back what the system takes anyway.
    """
    if threading.active_count() > 1 or not sys.modules.keys().isdisjoint({"ray", "prefect"}):
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
