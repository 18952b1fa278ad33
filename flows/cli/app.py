"""The command `privsweep`: every error is one sentence on standard error and an exit code.

The module of a command is loaded when the command is used, because `--help` must be fast.
"""

import atexit
import gc
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

MANY_OBJECTS = 50_000
"""Number of new objects that starts a garbage collection: by default, imports spent a tenth of their time on it."""

# fmt: off
COMMANDS = {
    "epsilon": ("training:epsilon", "Bound epsilon of one training run from below and from above."),
    "noise": ("noise:noise", "Find the least noise multiplier whose epsilon is proved to be at most a target."),
    "solve": ("noise:solve", "Find the largest steps, epochs or batch size whose epsilon is proved to be at most a target."),
    "profile": ("noise:profile", "Print epsilon, delta, rates of membership tests, advantage, accuracy and mu of one training run."),
    "plot": ("noise:plot", "Draw epsilon of a training run over a parameter, its trade-off curve, or its privacy profile."),
    "compare": ("training:compare", "Bound epsilon of one training run for every sampling that its options describe."),
    "steps": ("training:steps_of", "Compute the steps of an epoch from examples and batch size, and show which rounding is safe."),
    "labels": ("labels:labels", "Compare bags of labels with randomized response, and find when both reveal the same."),
    "audit": ("audit:audit", "Compute the epsilon that an audit in one run refutes, for the design by which canaries were included."),
    "membership": ("labels:membership", "Bound the advantage of every membership inference attack on a learner from given facts."),
    "ask": ("ask:ask", "Bound any problem now, by all methods that apply or by the named methods."),
    "methods": ("ask:methods", "List problems and the methods that bound them, or describe one problem or method."),
    "plan": ("sweep:plan", "Estimate the cost of a sweep: points, time, memory and disk. Starts and writes nothing."),
    "run": ("sweep:run", "Compute the points of a sweep that are not stored yet. After Ctrl-C, the same command resumes."),
    "status": ("sweep:status", "Show how many points of each sweep are stored, how many failed, and whether it is running."),
    "schema": ("sweep:schema", "Print the JSON Schema of the TOML format of sweeps, for completion and checks in editors."),
    "lookup": ("lookup:lookup", "Print the stored bounds that cover a problem, or the table of a sweep. Computes only with --compute."),
    "sql": ("store:sql", "Run a SELECT over a store; docs/sql.md describes the views."),
    "export": ("store:export", "Write the result of a SELECT as CSV, Parquet, JSON, Markdown or LaTeX."),
    "verify": ("maintenance:verify", "Read every byte of a store, and list damaged, missing, foreign and leftover files."),
    "repair": ("maintenance:repair", "Move damaged files into quarantine, and compute the lost points again. Deletes nothing."),
    "compact": ("maintenance:compact", "Merge small parts into large sorted parts; others may read and write meanwhile."),
    "gc": ("maintenance:gc", "Delete data that no reader uses: superseded rows, old snapshots, files of killed writers."),
    "serve": ("publish:serve", "Serve the lookup page on this machine only, and also compute new answers. Ctrl-C stops it."),
    "report sweep": ("reports:sweep", "Report on a sweep: tables, charts, failures and provenance. Short form: `report SWEEP`."),
    "report compare-training": ("reports:compare_training", "Compare allocation, Poisson sampling, shuffling and no amplification at equal settings."),
    "report compare-labels": ("reports:compare_labels", "Compare bags of labels with the randomized response that reveals as much."),
    "report compare-audits": ("reports:compare_audits", "Compare the epsilon that audits refute, planned and on training runs, with the true epsilon."),
    "report compare-membership": ("reports:compare_membership", "Compare all bounds of membership inference on the same problem, one interval below another."),
    "report figures": ("reports:figures", "Draw the figures of a paper from the stored points of its sweeps; see docs/reports.md."),
    "report label-figures": ("reports:label_figures", ""),
    "report audit-figures": ("reports:audit_figures", ""),
    "report membership-figures": ("reports:membership_figures", ""),
    "figures": ("reports:reproduced", "Compute the points that the figures of a paper need, and draw them. After Ctrl-C, it resumes."),
    "table publish": ("publish:publish", "Write all answers of a store into one Parquet file, and its Croissant description next to it."),
    "table show": ("publish:show", "Check a lookup table, and print its version and its number of rows for each problem."),
    "table import": ("publish:import_", "Recompute a sample of a lookup table, and copy its rows, marked as imported, into a store."),
    "table remove": ("publish:remove", "Delete the rows that were imported from a lookup table, and no others."),
    "table diff": ("publish:diff", "Compare two lookup tables: common brackets, moved brackets. Exits with 1 on a contradiction."),
    "page build": ("publish:build", "Write a static folder that answers from the store in a browser, without a backend."),
}
"""The function of each command, as `module:function` of this package, and its sentence in lists of commands.

A command without a sentence is an earlier name, which still works but is not listed.
"""
# fmt: on

PANELS = {
    "Ask": (
        "epsilon",
        "noise",
        "solve",
        "profile",
        "plot",
        "compare",
        "steps",
        "labels",
        "audit",
        "membership",
        "ask",
        "methods",
    ),
    "Sweep": ("plan", "run", "status", "schema"),
    "Store": ("lookup", "sql", "export", "verify", "repair", "compact", "gc"),
    "Publish": ("serve", "report", "figures", "table", "page"),
}
"""Commands and groups of commands under each heading of `privsweep --help`."""
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}


def _named(found: list[Any]) -> list[Any]:
    """Return parameters with an empty type for each flag: the help would say `<bool>`."""
    for each in found:
        if getattr(each, "is_flag", False):
            each.metavar = ""
    return found


def _joined(words: list[str], several: Mapping[str, int]) -> list[str]:
    """Return the words of a command with the numbers after an option of several numbers as one word.

    Args:
        words: The words.
        several: Options with the number of their numbers.

    Example:
        >>> _joined(["--counts=20", "10", "9", "--json"], {"--counts": 3})
        ['--counts', '20,10,9', '--json']
    """
    found, left = list[str](), 0
    for word in words:
        name, equals, value = word.partition("=")
        if name in several:
            found += [name, value] if equals else [name]
            left = several[name] - len(value.split(",")) * bool(equals)
        elif left > 0 and not word.startswith("--"):
            last = found.pop()
            found += [last, word] if last in several else [f"{last},{word}"]
            left -= len(word.split(","))
        else:
            found.append(word)
            left = 0
    return found


_LONG = re.compile(r"--sample-rate(?==|$)")
"""A second name of an option, which together with the first is too long for a line of help."""


class Documented(TyperCommand):
    """A command of the table."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read an option whose help names several numbers from as many words; refuse repeated options."""
        counted = {
            each.opts[0]: len((each.metavar or "").split()) for each in self.get_params(ctx) if each.opts
        }
        several = {name: count for name, count in counted.items() if count > 1}
        joined = _joined([_LONG.sub("--sampling-probability", word) for word in args], several)
        _, _, order = self.make_parser(ctx).parse_args(args=list(joined))
        for each in set(order):
            once = (
                each.nargs == 1 and not getattr(each, "multiple", True) and not getattr(each, "is_flag", True)
            )
            if once and order.count(each) > 1:
                from privcore.errors import DomainError

                raise DomainError(f"Expected {each.opts[0]} once, got it {order.count(each)} times.")
        return super().parse_args(ctx, joined)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return _named(super().get_params(ctx))


class DocumentedGroup(TyperGroup):
    """A group of commands, or the whole command line."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return _named(super().get_params(ctx))


class Deferred(TyperCommand):
    """A command whose module is loaded on first use; lists of commands need only its sentence.

    The callback returns the real command.
    """

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return a context of the real command."""
        assert self.callback is not None
        return self.callback().make_context(info_name, args, parent, **extra)


class ReportGroup(DocumentedGroup):
    """Commands below `report`; any other word is the name of a sweep."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the word `sweep` that `report SWEEP` leaves out."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["sweep", *args]
        return super().parse_args(ctx, args)


def command(words: str) -> Any:
    """Import a command and return it.

    Args:
        words: A key of `COMMANDS`.
    """
    module, _, function = COMMANDS[words][0].partition(":")
    alone = typer.Typer(add_completion=False)
    named = alone.command(words.rsplit(maxsplit=1)[-1], cls=Documented, epilog=_examples(words))
    named(getattr(import_module(f"flows.cli.{module}"), function))
    made = typer.main.get_command(alone)
    # Typer keeps the line breaks of a docstring after its first paragraph, and breaks the lines again.
    made.help = "\n\n".join(" ".join(text.split()) for text in (made.help or "").split("\n\n"))
    return made


def _examples(words: str) -> str | None:
    """Return the end of the help of a command or group; None for an earlier name."""
    from flows.cli.examples import EXAMPLES

    return "\n\n".join(["Examples:", *EXAMPLES[words]]) if words in EXAMPLES else None


def _importing(words: str) -> Callable[[], Any]:
    def loaded() -> Any:
        return command(words)

    return loaded


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from storage.schema import commit_text, provenance
        from storage.table.shipped import described, shipped_version

        code, table = provenance(), shipped_version()
        commit = commit_text(f"commit {code.git_commit[:12]}", code.git_dirty)
        typer.echo(f"privsweep {version('privsweep')} ({commit})")
        typer.echo(described(table) if table else "no shipped table")
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Declare the options that come before a command."""


def _assembled() -> typer.Typer:
    """Return the command line with its groups and commands, without importing any command."""
    whole = typer.Typer(
        cls=DocumentedGroup,
        name="privsweep",
        help="Compute rigorous bounds of differential privacy for grids of problems, and store them in Parquet.",
        epilog="Exit codes: 0 done, 1 a check failed, 2 misuse, 3 the store has no answer, 4 a limit was reached, "
        "5 Ray or Prefect is not available, 6 some points of a run have no answer, 130 interrupted.",
        callback=_options,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    groups = {
        "report": typer.Typer(
            cls=ReportGroup,
            help="Write reports on a store: `report SWEEP` for one sweep, or a command below.",
            epilog=_examples("report"),
            no_args_is_help=True,
        ),
        "table": typer.Typer(
            cls=DocumentedGroup,
            help="Publish, check, import and compare lookup tables: answers of a store in a Parquet file.",
            epilog=_examples("table"),
        ),
        "page": typer.Typer(
            cls=DocumentedGroup,
            help="Build a lookup page of a store, for browsers.",
            epilog=_examples("page"),
            no_args_is_help=True,
        ),
    }
    for words, (_, sentence) in COMMANDS.items():
        group, _, name = words.rpartition(" ")
        groups.get(group, whole).command(
            name, cls=Deferred, help=sentence, hidden=not sentence, rich_help_panel=_PANEL_OF.get(words)
        )(_importing(words))
    for name, below in groups.items():
        whole.add_typer(below, name=name, rich_help_panel=_PANEL_OF[name])
    return whole


app = _assembled()


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; print an error as one sentence on standard error.

    Args:
        arguments: Words after `privsweep`.

    Returns:
        An `ExitCode`; for an error, the exit code of its class.
    """
    try:
        result = typer.main.get_command(app).main(
            args=list(arguments), prog_name="privsweep", standalone_mode=False
        )
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as ended:
        # The reader of the pipe, such as head, has closed it; Typer would exit with code 1.
        if not any(isinstance(each, BrokenPipeError) for each in (ended, ended.__context__)):
            raise
        sys.stdout = None
        return 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  a bug is raised again below
        code, sentence = _explain(error)
        return _fail(sentence, code)
    if not result:
        return 0
    from privcore import ExitCode

    code = ExitCode(result)  # Typer has already turned a KeyboardInterrupt into `typer.Exit`
    return _fail("Interrupted.", code) if code is ExitCode.INTERRUPTED else code


def _explain(error: BaseException) -> tuple[int, str]:
    """Return exit code and sentence of an expected error; raise any other error again."""
    from privcore import ExitCode, PrivsweepError
    from privcore.errors import ChoiceError, interrupted

    match error:
        case ChoiceError():
            return error.exit_code, str(error)
        case PrivsweepError():
            return error.exit_code, " ".join(str(error).split())
        case TyperException():
            return ExitCode.MISUSE, " ".join(error.format_message().split())
        case KeyboardInterrupt():
            return ExitCode.INTERRUPTED, "Interrupted."
        case OSError(strerror=str() as what):
            told = f"{error.filename}: {what}." if error.filename else f"{what}."
            return ExitCode.MISUSE, " ".join(told.split())
    if _Interrupts.came or (isinstance(error, SystemError) and interrupted(error)):
        return ExitCode.INTERRUPTED, "Interrupted."
    raise error


def _fail(sentence: str, code: int) -> int:
    """Print one sentence to standard error, and the choices that follow it; return the code."""
    if sentence:
        from flows.printing import WRONG, note, printable, say
        from flows.terminal.window import fresh_line
        from privcore import ExitCode

        if code == ExitCode.INTERRUPTED:
            fresh_line(sys.stderr)
        first, *choices = sentence.splitlines()
        note(printable(first), style=WRONG)
        for choice in choices:
            say(printable(choice), file=sys.stderr)
    return code


class _Interrupts:
    """Whether Ctrl-C came: a library that it interrupts may raise an error of its own."""

    came = False

    @classmethod
    def note(cls, _signal: int, _frame: object) -> NoReturn:
        cls.came = True
        raise KeyboardInterrupt


def main() -> None:
    """Entry point of the console script."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _Interrupts.note)
    for name in (
        "stdin",
        "stdout",
        "stderr",
    ):  # in this order: an opened file gets the lowest free descriptor
        if getattr(sys, name) is None:  # the shell closed it, as in `>&-`
            setattr(sys, name, Path(os.devnull).open("r+"))  # noqa: SIM115
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in Ray's workers; else last bits of sums differ
    # else numba lets colorama write a control sequence at exit, on terminals without colours, too
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    gc.set_threshold(MANY_OBJECTS)
    _leave(run(sys.argv[1:]))


def _leave(code: int) -> NoReturn:
    """End the process, immediately if no other thread, Ray or Prefect is active.

    Python's own shutdown of a thousand modules takes a sixth of the time of a lookup, and only frees memory
    that the system frees anyway.
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
