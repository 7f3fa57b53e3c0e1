"""What the commands of `npu-watchd` share: the option --config, exit codes, and how they complain."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from npu_watchd import config as configs

F = TypeVar("F", bound=Callable[..., Any])

OK, FAILED, BAD_CONFIG, NO_DAEMON = 0, 1, 2, 3


def config_option(command: F) -> F:
    """`--config PATH`, before or after the command's name."""
    option = click.option(
        "--config", "config_file", type=click.Path(path_type=Path), help="Default: /etc/npu-watchd/config.toml."
    )
    return option(command)


def load(file: Path | None, *, otherwise: int = BAD_CONFIG) -> configs.Config:
    """The checked config; a bad one ends the program here, with the code `otherwise`."""
    from npu_watchd import config as configs
    from npu_watchd.rules import RULE_IDS

    try:
        return configs.load(file, defaults=probe_defaults(), rules=RULE_IDS)
    except configs.ConfigError as error:
        sys.exit(complain(str(error), otherwise))


def probe_defaults() -> Mapping[str, Any]:
    """Each probe's own period and deadline."""
    from npu_watchd.sources.probes import DEFAULTS

    return DEFAULTS


def complain(message: str, code: int, *, prefix: str = "npu-watchd: ") -> int:
    """Say what is wrong on stderr; the exit code is handed back."""
    click.echo(prefix + message, err=True)
    return code
