"""Options that the commands of `raybo` share, and the arguments of `optimize` they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from raybo.errors import RayboError

STORAGE = "runs"

_NAMES = {"trials": "max_trials", "seconds": "max_seconds"}
_RESOURCES = ("cpus", "gpus", "custom")

storage_option = click.option(
    "--storage",
    default=STORAGE,
    show_default=True,
    envvar="RAYBO_STORAGE",
    help="Folder or URI (s3://...) where studies are kept.",
)
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def limit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `run` and `resume` share to a command."""
    positive = click.FloatRange(min=0, min_open=True)
    options = [
        click.option("--trials", type=click.IntRange(min=1), help="Evaluations in all."),
        click.option("--seconds", type=positive, help="Start no evaluation after this time."),
        click.option("--target", type=float, help="Stop at a value this good."),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            help="Evaluations at the same time.  [default: what the cluster has room for]",
        ),
        click.option("--timeout", type=positive, help="Seconds that one evaluation may take."),
        click.option(
            "--retries", type=click.IntRange(min=0), help="Further tries after a failure."
        ),
        click.option(
            "--max-steps", type=click.IntRange(min=1), help="Reports of a complete evaluation."
        ),
        click.option(
            "--stop-early/--no-stop-early",
            default=None,
            help="Stop evaluations that report worse values than most; needs --max-steps.",
        ),
        click.option("--cpus", type=click.FloatRange(min=0), help="CPUs for one evaluation."),
        click.option("--gpus", type=click.FloatRange(min=0), help="GPUs for one evaluation."),
        click.option(
            "--resource",
            "custom",
            metavar="NAME=AMOUNT",
            multiple=True,
            help="Custom resource of Ray for one evaluation; repeatable.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def settings_of(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `optimize` for those options of `limit_options` that were given."""
    given = {key: value for key, value in limits.items() if value not in (None, ())}
    settings = {_NAMES.get(k, k): v for k, v in given.items() if k not in _RESOURCES}
    if any(key in given for key in _RESOURCES):
        settings["resources"] = {
            "num_cpus": given.get("cpus", 1),
            "num_gpus": given.get("gpus", 0),
        }
    if "custom" in given:
        amounts = dict(pair(text, "--resource") for text in given["custom"])
        settings["resources"]["resources"] = amounts
    return settings


def pair(text: str, option: str) -> tuple[str, Any]:
    """Return key and value of KEY=VALUE, the value read as YAML."""
    from raybo.space.yaml import read_yaml

    key, equals, value = text.partition("=")
    if not key or not equals:
        raise RayboError(f"{option} {text}: write it as KEY=VALUE")
    try:
        return key, read_yaml(value)
    except RayboError as error:
        raise RayboError(f"{option} {text}: the value is {error}") from error
