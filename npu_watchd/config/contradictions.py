"""What no single value shows: keys that cannot both be meant, and files that the config names and nobody can read."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from npu_watchd.config import sharing, thresholds
from npu_watchd.config.alertmanager import AlertmanagerSection
from npu_watchd.config.error import ConfigError
from npu_watchd.config.sections import PROBE_NAMES, Config
from npu_watchd.config.values import Address, Seconds

STALE_PERIODS = 3
"""A reading older than this many periods is stale (DESIGN.md, section 6)."""

ALERT_LIFE_S = 240.0
"""Alertmanager takes an alert for resolved this long after the last time it was sent (DESIGN.md, section 8)."""

LONGEST_ACT_S = 60.0
"""Longest that one change of a scheduler may take."""

_SLURM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class ProbeDefault(Protocol):
    """What a probe does when the file says nothing of it: sources' `Probe` is one."""

    @property
    def every_s(self) -> float | None:
        """None: it has no period, it follows a stream."""

    @property
    def timeout_s(self) -> float | None:
        """None: it runs no tool."""


ProbeDefaults = Mapping[str, ProbeDefault]


def refuse(config: Config, defaults: ProbeDefaults, rules: Collection[str] = ()) -> None:
    """Raise ConfigError for the first contradiction; probes without a default are judged by what the file says."""
    checks = (_probes, _listen, _web_file, _paths, _alertmanager, _quarantine, _kubernetes, _limits, _sharing)
    for check in checks:
        for key, problem, cure in check(config, defaults):
            raise ConfigError(config.file, key, problem, cure)
    for index, name in enumerate(config.rules.off):
        if rules and name not in rules:
            near = get_close_matches(name, rules, 1)
            cure = f'did you mean "{near[0]}"?' if near else "the rules are in docs/alerts.md"
            raise ConfigError(config.file, f"rules.off[{index}]", f'"{name}" is no rule', cure)


Contradiction = tuple[str, str, str]
Check = Callable[[Config, ProbeDefaults], Iterator[Contradiction]]


def probe_times(config: Config, defaults: ProbeDefaults, name: str) -> tuple[float | None, float | None]:
    """Period and deadline of a probe as they hold, in seconds; None: it has none, or it is not known here.

    A built-in deadline gives way to a shorter period that the file asks for.
    """
    settings, default = config.probe(name), defaults.get(name)
    every_s = settings.every_s or (default.every_s if default else None)
    timeout_s = settings.timeout_s or (default.timeout_s if default else None)
    if settings.timeout_s is None and every_s is not None and timeout_s is not None:
        timeout_s = min(timeout_s, every_s)
    return every_s, timeout_s


def _probes(config: Config, defaults: ProbeDefaults) -> Iterator[Contradiction]:
    for name in PROBE_NAMES:
        every_s, timeout_s = probe_times(config, defaults, name)
        if every_s is not None and timeout_s is not None and round(timeout_s - STALE_PERIODS * every_s, 6) > 0:
            periods = f"{STALE_PERIODS} periods of {Seconds(every_s)}"
            problem = f"a deadline of {Seconds(timeout_s)} is longer than {periods}, after which a reading is stale"
            cure = "one slow call would blind us: shorten timeout or lengthen every"
            yield f"probes.{name}.timeout", problem, cure


def _listen(config: Config, _: ProbeDefaults) -> Iterator[Contradiction]:
    addresses = config.web.listen
    if not addresses:
        yield "web.listen", "is empty", 'nobody could scrape: write ["0.0.0.0:18910"], or leave the key out'
    for index, address in enumerate(addresses):
        if any(_overlap(address, earlier) for earlier in addresses[:index]):
            yield f"web.listen[{index}]", f'"{address}" is taken by another entry', "write each address once"


def _overlap(one: Address, other: Address) -> bool:
    if one.port != other.port or one.port == 0:
        return False
    hosts = {_plain_host(one), _plain_host(other)}
    if len(hosts) == 1:
        return True
    return "0.0.0.0" in hosts and not any(":" in host for host in hosts)  # noqa: S104 - a comparison


def _plain_host(address: Address) -> str:
    try:
        return str(ipaddress.ip_address(address.host))
    except ValueError:
        return address.host.lower()


def _web_file(config: Config, _: ProbeDefaults) -> Iterator[Contradiction]:
    yield from _unreadable("web.config_file", config.web.config_file, "for plain HTTP")


def _unreadable(key: str, file: Path | None, without: str) -> Iterator[Contradiction]:
    if file is None:
        return
    try:
        with file.open("rb"):
            return
    except FileNotFoundError:
        yield key, f"there is no file {file}", f"write it, or leave the key out {without}"
    except OSError as error:
        yield key, f"{file}: {error.strerror}", "let the user that runs npu-watchd read it"


def _paths(config: Config, _: ProbeDefaults) -> Iterator[Contradiction]:
    if config.paths.state_dir.is_relative_to(config.paths.runtime_dir):
        problem = f"{config.paths.state_dir} is inside runtime_dir, which a reboot empties"
        yield "paths.state_dir", problem, "name a folder on disk, such as /var/lib/npu-watchd"


def _alertmanager(config: Config, _: ProbeDefaults) -> Iterator[Contradiction]:
    chosen = config.alertmanager
    if chosen.resend_s > ALERT_LIFE_S / 2:
        problem = f"{chosen.resend_s} does not fit twice into the {Seconds(ALERT_LIFE_S)} that a sent alert lives"
        yield "alertmanager.resend", problem, "one lost request would resolve it: write 1m"
    if chosen.resend_s < 1:
        yield "alertmanager.resend", f"{chosen.resend_s} is less than a second", "nobody wants that many: write 1m"
    if chosen.timeout_s > ALERT_LIFE_S / 8:
        problem = f"{chosen.timeout_s} is longer than an eighth of the {Seconds(ALERT_LIFE_S)} that a sent alert lives"
        yield "alertmanager.timeout", problem, "an alert would end while it is being sent again: write 5s"
    yield from _repeated("alertmanager.urls", [url.rstrip("/") for url in chosen.urls])
    yield from _credentials(chosen)
    yield from _both("cert_file", chosen.cert_file, "key_file", chosen.key_file)
    if chosen.proxy is not None and not chosen.proxy.startswith("http://"):
        yield "alertmanager.proxy", f'"{chosen.proxy}" is spoken to in TLS', 'write a proxy such as "http://proxy:3128"'
    for key in ("basic_auth_password_file", "bearer_token_file", "ca_file", "cert_file", "key_file"):
        yield from _unreadable(f"alertmanager.{key}", getattr(chosen, key), "where they do not ask for it")


def _credentials(chosen: AlertmanagerSection) -> Iterator[Contradiction]:
    user, password_file = chosen.basic_auth_user, chosen.basic_auth_password_file
    if chosen.bearer_token_file is not None and (user or password_file):
        problem = "is there beside basic_auth_user or basic_auth_password_file"
        yield "alertmanager.bearer_token_file", problem, "a request bears one of the two: take out the other"
    if user is not None and ":" in user:
        yield "alertmanager.basic_auth_user", "has a colon in it", "HTTP cannot send that: choose another user"
    yield from _both("basic_auth_user", user, "basic_auth_password_file", password_file)


def _both(one: str, this: object, other: str, that: object) -> Iterator[Contradiction]:
    for key, present, missing, absent in ((one, this, other, that), (other, that, one, this)):
        if present is not None and absent is None:
            yield f"alertmanager.{key}", f"is of no use without {missing}", f"write {missing} too, or take it out"


def _quarantine(config: Config, _: ProbeDefaults) -> Iterator[Contradiction]:
    chosen, slurm = config.quarantine, config.slurm
    yield from _repeated("quarantine.act", chosen.act)
    if "command" in chosen.act and not chosen.command:
        yield "quarantine.act", 'has "command", and there is none', "write quarantine.command, or take it out"
    if chosen.command and "/" in chosen.command[0] and not chosen.command[0].startswith("/"):
        problem = f'"{chosen.command[0]}" is a relative path'
        yield "quarantine.command[0]", problem, "write an absolute path, or a name on PATH"
    if chosen.every_s < 1:
        problem = f"{chosen.every_s} is less than a second"
        yield "quarantine.every", problem, "a controller has many nodes to answer: write 30s"
    if slurm.node_name is not None and not _SLURM_NAME.fullmatch(slurm.node_name):
        problem = f'"{slurm.node_name}" cannot be the name of one node'
        yield "slurm.node_name", problem, "write it as `sinfo -N` has it"
    for key, timeout_s in (
        ("quarantine.command_timeout", chosen.command_timeout_s),
        ("slurm.timeout", slurm.timeout_s),
    ):
        if timeout_s > LONGEST_ACT_S:
            problem = f"{timeout_s} is longer than {Seconds(LONGEST_ACT_S)}"
            yield key, problem, "what is decided meanwhile would wait for it: write 30s"


def _kubernetes(config: Config, _: ProbeDefaults) -> Iterator[Contradiction]:
    chosen = config.kubernetes
    if chosen.kubeconfig is None and chosen.context is not None:
        yield "kubernetes.context", "is of no use without kubeconfig", "write kubeconfig too, or take it out"
    if chosen.kubeconfig is not None and chosen.token_file is not None:
        problem = "is there beside kubeconfig"
        yield "kubernetes.token_file", problem, "a request bears one token: take out one of the two"
    if chosen.api_url is not None and chosen.api_url.startswith("http://") and not _is_loopback(chosen.api_url):
        problem = f'"{chosen.api_url}" is plain http'
        yield "kubernetes.api_url", problem, "anybody on the way could read the token: write https"
    if chosen.timeout_s > LONGEST_ACT_S:
        problem = f"{chosen.timeout_s} is longer than {Seconds(LONGEST_ACT_S)}"
        yield "kubernetes.timeout", problem, "a server that hangs would hold up what is decided meanwhile: write 10s"
    for key in ("kubeconfig", "ca_file", "token_file"):
        yield from _unreadable(f"kubernetes.{key}", getattr(chosen, key), "for the pod's own")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _repeated(key: str, values: Sequence[str]) -> Iterator[Contradiction]:
    for index, value in enumerate(values):
        if value in values[:index]:
            yield f"{key}[{index}]", f'"{value}" is there twice', "write each once"


def _limits(config: Config, _: ProbeDefaults) -> Iterator[Contradiction]:
    yield from thresholds.problems(config.limits)


def _sharing(config: Config, _: ProbeDefaults) -> Iterator[Contradiction]:
    yield from sharing.problems(config)
