"""The command `raybo`.

Exit codes: 0 done; 1 an unexpected error, with its traceback; 2 wrong usage, or an error that
raybo explains in one line (--debug shows its traceback); 130 interrupted, and can be resumed.

Every command imports what it needs, so that `raybo --help` loads neither ray nor torch.
"""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybo import __version__
from raybo.cli_options import (
    STORAGE,
    json_option,
    limit_options,
    pair,
    quiet_option,
    settings_of,
    storage_option,
)
from raybo.errors import RayboError

if TYPE_CHECKING:
    from rich.console import Console

    from raybo.result import Result

TRIALS = 200
INTERRUPTED = 130  # exit code, as after SIGINT


class Command(click.Command):
    """A command that reports the errors of raybo in one line."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        text = "Show the traceback of an error."
        self.params.append(click.Option(["--debug"], is_flag=True, help=text))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a RayboError ends it with exit code 2."""
        debug = ctx.params.pop("debug")
        try:
            return super().invoke(ctx)
        except RayboError as error:
            if debug:
                raise
            line, _, more = str(error).partition("\n\n")  # more: the traceback of the user's code
            click.secho(f"Error: {' '.join(line.split())}", fg="red", err=True)
            if more:
                click.echo(f"\n{more}", err=True)
            ctx.exit(2)


class Group(click.Group):
    """The commands, in the order of their definition."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """Return the names in the order of their definition."""
        return list(self.commands)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="raybo")
def main() -> None:
    """Asynchronous Bayesian optimisation on a Ray cluster.

    Start with `raybo demo`, then run your own function: a module with

    \b
        def objective(config): return (config["x"] - 0.3) ** 2

    and a file space.yaml with

    \b
        x: {type: float, low: 0, high: 1}

    are enough for `raybo run MODULE:objective --space space.yaml`.

    Exit codes: 0 done, 1 unexpected error, 2 an error that is explained, 130 interrupted.
    """  # noqa: D301  (click looks for the character \b)


# -- commands ------------------------------------------------------------------------------------


@main.command()
@click.option("--trials", type=click.IntRange(min=1), default=240, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--dim", type=click.IntRange(min=3), default=10**9, show_default=True, help="Dimensions."
)
@storage_option
@quiet_option
def demo(trials: int, workers: int, seed: int, dim: int, storage: str, quiet: bool) -> None:
    """Watch raybo find the minimum of a function on this machine."""
    import secrets

    from raybo.demo import OPTIMUM, OPTIONS, objective
    from raybo.space.box import Box
    from raybo.views.html import write_report

    click.echo(f"Branin, its 2 coordinates hidden among {dim:,}, {workers} workers", err=True)
    result = _optimize(
        objective,
        space=Box(dim),
        method="rembo",
        method_options=OPTIONS,
        max_trials=trials,
        workers=workers,
        resources={"num_cpus": 0},  # an evaluation only sleeps
        seed=seed,
        storage=storage,
        name=f"demo-{secrets.token_hex(3)}",
        progress=not quiet,
    )
    if result.best_value is not None:
        gap = result.best_value - OPTIMUM
        click.echo(f"\nThe minimum is known to be {OPTIMUM:.6g}: found to within {gap:.2g}.")
        page = Path("raybo-demo.html")
        write_report(result, page, OPTIMUM)
        click.echo(f"Report: {page.resolve()}")
    _finish(result, storage, trials)


@main.command()
@click.argument("objective", metavar="MODULE:FUNCTION")
@click.option("--space", "space_file", required=True, type=click.Path(), help="YAML file.")
@click.option("--method", default="auto", show_default=True, help="How to search.")
@click.option("--mode", type=click.Choice(["min", "max"]), default="min", show_default=True)
@click.option("--metric", help="Entry to optimise, where the function returns a dict.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--option",
    "options",
    metavar="KEY=VALUE",
    multiple=True,
    help="Option of the method, its value in YAML; repeatable.",
)
@click.option("--name", help="Name of the study; one that exists is resumed.  [default: made up]")
@limit_options
@storage_option
@quiet_option
def run(
    objective: str,
    space_file: str,
    method: str,
    mode: str,
    metric: str | None,
    seed: int,
    options: tuple[str, ...],
    name: str | None,
    storage: str,
    quiet: bool,
    **limits: Any,
) -> None:
    """Optimise FUNCTION of MODULE over the space in a YAML file.

    MODULE is looked for in the current folder first; the function takes a dict and returns a
    number, or a dict with --metric in it. Without --trials, --seconds and --target, the study
    ends after 200 evaluations. Ctrl-C once waits for those that run, twice stops now.
    """
    from raybo.runtime.code import load_objective
    from raybo.space.yaml import space_from_yaml

    function = load_objective(objective, Path.cwd())
    try:
        space = space_from_yaml(Path(space_file))
    except RayboError as error:
        raise RayboError(f"--space {space_file}: {error}") from error
    settings = {"max_trials": None, **settings_of(limits)}
    if not any(key in settings for key in ("max_seconds", "target")):
        settings["max_trials"] = settings["max_trials"] or TRIALS
    result = _optimize(
        function,
        space=space,
        method=method,
        method_options=dict(pair(text, "--option") for text in options),
        mode=mode,
        metric=metric,
        seed=seed,
        name=name,
        storage=storage,
        progress=not quiet,
        **settings,
    )
    _finish(result, storage, settings["max_trials"], objective)


@main.command()
@click.argument("name")
@click.option("--objective", metavar="MODULE:FUNCTION", help="If not the one of the journal.")
@click.option("--yes", is_flag=True, help="Run the objective of the journal, whatever it is.")
@limit_options
@storage_option
@quiet_option
def resume(
    name: str, storage: str, quiet: bool, objective: str | None, yes: bool, **limits: Any
) -> None:
    """Continue the study NAME; a finished one needs a larger --trials.

    Settings that are not given stay as they were. Run it in the folder of the objective: one that
    is only named by the journal, which somebody else may have written, is shown first.
    """
    from raybo.runtime.resume import resume_arguments

    def trusts(path: str) -> bool:
        return yes or _confirm(
            f"The journal names the objective {path!r}, which is not in this folder. Run it?"
        )

    settings, here = settings_of(limits), Path.cwd()
    arguments = resume_arguments(name, storage, settings, here, objective, trusts)
    result = _optimize(**arguments, progress=not quiet)
    _finish(result, storage, arguments["max_trials"], objective)


@main.command()
@click.argument("name")
@storage_option
@json_option
def status(name: str, storage: str, as_json: bool) -> None:
    """Show how far the study NAME is; it may be running."""
    from raybo.views.status import status_of, status_table

    facts = status_of(name, storage)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    else:
        _console().print(status_table(facts))


@main.command("list")
@storage_option
@json_option
def list_command(storage: str, as_json: bool) -> None:
    """List all studies."""
    import dataclasses

    from raybo.study.outcome import list_studies
    from raybo.views.status import study_table

    studies = list_studies(storage)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(study) for study in studies], indent=2))
    elif studies:
        _console().print(study_table(studies))
    else:
        click.echo(f"No studies in {storage}. Start one with `raybo demo`.")


@main.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@storage_option
def delete(name: str, yes: bool, storage: str) -> None:
    """Remove the study NAME and its folder."""
    from raybo.study.outcome import delete_study, load_record

    n = load_record(name, storage).n_ended
    if not yes:
        click.confirm(f"Remove study {name!r} and its {n} finished trials?", abort=True)
    click.echo(f"Removed {delete_study(name, storage)}")


@main.command()
def methods() -> None:
    """List the methods with their options and defaults.

    A default that is not shown is the method's own decision. Options are given with
    --option KEY=VALUE, or as method_options={...} in Python.
    """
    from raybo.methods.registry import METHODS, method_options

    for name, presets in METHODS.items():
        for preset in presets:
            options = method_options(name, preset).items()
            shown = (key if value is None else f"{key}={value}" for key, value in options)
            label = name if preset == "default" else f"{name} preset={preset}"
            click.echo(f"{label:22} {', '.join(shown)}".rstrip())


@main.command()
@click.argument("name")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="HTML file.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@storage_option
def report(name: str, output: Path | None, show: bool, storage: str) -> None:
    """Write an HTML report of the study NAME."""
    from raybo.result import load_result

    result = load_result(name, storage)
    folder = Path(result.location)
    path = output or (folder / "report.html" if folder.is_dir() else Path(f"{folder.name}.html"))
    result.report(path)
    click.echo(path)
    if show:
        click.launch(str(path.resolve()))


@main.command()
@click.argument("name")
@click.option(
    "--to", type=click.Choice(["csv", "parquet", "optuna"]), default="csv", show_default=True
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File.")
@click.option("--raw", is_flag=True, help="Leave texts that look like formulas as they are.")
@storage_option
def export(name: str, to: str, output: Path | None, raw: bool, storage: str) -> None:
    """Write the trials of the study NAME to a file for other programs.

    In a CSV file, a text that a spreadsheet would run as a formula gets an apostrophe in front.
    The file of --to optuna is an SQLite database: `optuna-dashboard sqlite:///FILE` shows it.
    """
    from raybo.result import load_result
    from raybo.study.journal.storage import slug
    from raybo.views.export import SUFFIXES, write_table

    result = load_result(name, storage)
    path = output or Path(slug(result.name) + SUFFIXES[to])
    write_table(result, to, path, raw)
    click.echo(path)


@main.command()
@click.argument("name")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True)
@storage_option
def dashboard(name: str, host: str, port: int, storage: str) -> None:
    """Watch the study NAME in optuna-dashboard, while it runs or after; Ctrl-C ends it."""
    from raybo.views.dashboard import serve

    serve(name, storage, host, port, click.echo)


# All that follows TASK, --help too, is for the task.
@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="TASK [OPTIONS]")
@click.option("--list", "listed", is_flag=True, help="Name every table, figure and program.")
def bench(arguments: tuple[str, ...], listed: bool) -> None:
    """Rerun a table of a paper, or a benchmark of raybo."""
    from raybo.benchmarks.cli import main as run_bench

    run_bench(["--list"] if listed else arguments)


# -- shared by commands ---------------------------------------------------------------------------


def _optimize(objective: Any, **arguments: Any) -> Result:
    """Run `raybo.optimize` on a Ray whose workers find the code of this folder."""
    from raybo.methods.registry import build_method

    with _waiting("starting", bool(arguments["progress"])):
        options = arguments.get("method_options")
        build_method(
            arguments["method"], arguments["space"], options
        )  # a typo is reported before Ray starts

        from raybo.runtime.code import share_folder
        from raybo.runtime.optimize import optimize

        share_folder(Path.cwd(), objective)
    try:
        return optimize(objective, **arguments)
    except KeyboardInterrupt:  # the second Ctrl-C; how to resume has been printed
        sys.exit(INTERRUPTED)


def _finish(
    result: Result, storage: str, trials: int | None, objective: str | None = None
) -> None:
    """Print the result and the next commands; exit with 130 after an interrupt."""
    from raybo.runtime.resume import resume_hint
    from raybo.views.status import closing_text

    more = 2 * trials if trials and len(result.trials) >= trials else None
    hint = resume_hint(result.name, storage, result.objective, True, objective, more)
    flags = "" if storage == STORAGE else f" --storage {shlex.quote(storage)}"
    click.echo(closing_text(result, flags, hint))
    if result.stop is not None and result.stop.kind == "interrupted":
        sys.exit(INTERRUPTED)


def _confirm(question: str) -> bool:
    """Ask, on stderr; without an answer it is no."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)  # ends the line of the question
        return False


def _console() -> Console:
    """Console for standard output; wide where it is not a terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200)


def _waiting(text: str, show: bool) -> AbstractContextManager[Any]:
    """Spinner on stderr, if it is a terminal."""
    from rich.console import Console

    return Console(stderr=True).status(text) if show and sys.stderr.isatty() else nullcontext()
