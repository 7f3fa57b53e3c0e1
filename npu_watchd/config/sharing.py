"""`[contention.devices]`: who may share one device, or a range of them, where that is not what holds for all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from npu_watchd.config.sections import SHARES, Config
from npu_watchd.config.values import BadValue, described, toml_text

EXPECTED = 'a device_id or a range of them, such as "4" or "4-7"'
_DEVICES = re.compile(r"(?P<first>[0-9]{1,4})(?:-(?P<last>[0-9]{1,4}))?", re.ASCII)
_CHOICES = " or ".join(toml_text(choice) for choice in SHARES)

Problem = tuple[str, str, str]
"""Key, what is wrong, what to write instead."""


def shares_of(config: Config) -> Mapping[str, str]:
    """device_id → who may share it. Raises BadValue for what `problems` names."""
    return {str(number): share for name, share in config.contention.devices.items() for number in _numbers(name)}


def problems(config: Config) -> Iterator[Problem]:
    """What is wrong with the table."""
    expected = config.node.expected_devices
    named: dict[int, str] = {}
    for name, share in config.contention.devices.items():
        key = f"contention.devices.{toml_text(name)}"
        try:
            numbers = _numbers(name)
        except BadValue as error:
            yield key, error.problem, error.cure
            continue
        if share not in SHARES:
            yield key, f"is {described(share)}", f"write {_CHOICES}"
        twice = next((number for number in numbers if number in named), None)
        if twice is not None:
            yield key, f'device {twice} is in "{named[twice]}" too', "write each device once"
        if expected and numbers[-1] >= expected:
            problem = f"there is no device {numbers[-1]} where node.expected_devices is {expected}"
            yield key, problem, f"the last device is {expected - 1}"
        named |= dict.fromkeys(numbers, name)


def _numbers(name: str) -> range:
    match = _DEVICES.fullmatch(name)
    if match is None:
        raise BadValue("names no device", f"write {EXPECTED}")
    first = int(match["first"])
    last = first if match["last"] is None else int(match["last"])
    if last < first:
        raise BadValue("is a range that ends before it begins", f'write "{last}-{first}"')
    return range(first, last + 1)
