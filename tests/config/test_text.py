"""What `config init` and `config show` print says what holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from npu_watchd.config import PROBE_NAMES, Config, effective, load, template
from npu_watchd.config.keys import KEYS
from npu_watchd.config.thresholds import limits_of
from npu_watchd.limits import LIMITS


@dataclass(frozen=True)
class Times:
    every_s: float
    timeout_s: float


DEFAULTS = {name: Times(60.0, 10.0) for name in PROBE_NAMES}


def test_the_template_as_it_is_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(template(DEFAULTS))
    config = load(file, defaults=DEFAULTS)
    assert config.given == frozenset()
    assert all(key.value_in(config) == key.value_in(Config()) for key in KEYS)


def test_every_line_of_the_template_is_good_once_uncommented(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    text = re.sub(r"^# (\w+ = )", r"\1", template(DEFAULTS), flags=re.MULTILINE)
    # Each is one of a pair of keys that exclude each other.
    without_token = re.sub(r"^(?:bearer_)?token_file.*\n", "", text, flags=re.MULTILINE)
    for name in re.findall(r'"/etc/npu-watchd/(.*)"', without_token):
        (tmp_path / name).write_text("{}")
    file.write_text(without_token.replace("/etc/npu-watchd", str(tmp_path)))
    config = load(file, defaults=DEFAULTS)
    keys = {key.name for key in KEYS if not key.section}
    # Of a table whose keys are devices, as its example has them.
    keys |= {"contention.devices.0-3", "contention.devices.4"}
    limits = {f"limits.{limit.name}" for limit in LIMITS}
    assert config.given == (keys | limits) - {"alertmanager.bearer_token_file", "kubernetes.token_file"}
    assert {limit.name: limits_of(config)[limit.name] for limit in LIMITS} == {
        limit.name: limit.default for limit in LIMITS
    }
    for key in KEYS:
        if not key.section and key.default is not None:
            assert key.value_in(config) == key.default, key.name


def test_the_effective_values_name_their_source(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[node]\nexpected_devices = 8\n[probes]\nnpu_ecc.every = "2m"\n[limits.chip."910B.x"]\nflaps = 3\n')
    rows = {key: (value, source) for key, value, source in effective(load(file), DEFAULTS)}
    assert rows["node.expected_devices"] == ("8", "file")
    assert rows["node.name"] == ("(the host name)", "default")
    assert rows["engine.cycle"] == ('"5s"', "default")
    assert rows["probes.npu_ecc.every"] == ('"2m"', "file")
    assert rows["probes.npu_ecc.timeout"] == ('"10s"', "default")
    assert rows['limits.chip."910B.x".flaps'] == ("3", "file")


def test_a_limit_stands_in_the_template_with_its_reason_unit_and_source() -> None:
    assert (
        "# A reboot of the switch passes.\n"
        "# Unit: s. Source: gpud: flap of ≥3 × (down ≥25 s, then up) in 12 h, drop of ≥4 min.\n"
        '# port_down_s = "4m"\n'
    ) in template(DEFAULTS)
    assert 'Unless it is set here, 910A: "1GiB", 910B: "5GiB", A3: "5GiB".\n' in template(DEFAULTS)
