"""Loading: what a good file gives, and that every bad one is refused with file, key, problem and cure."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu_watchd.config import Config, ConfigError, effective, load, probe_times, shares_of, unused
from npu_watchd.config import file as file_of_config
from npu_watchd.config.keys import BY_NAME, KEYS
from npu_watchd.config.sections import Sections


@dataclass(frozen=True)
class Times:
    every_s: float | None
    timeout_s: float | None


DEFAULTS = {"npu_info": Times(15.0, 10.0), "npu_tool_log": Times(None, None)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def refusal(file: Path, text: str | bytes) -> str:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as refused:
        load(file, defaults=DEFAULTS)
    return str(refused.value).removeprefix(f"{file}: ")


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    config = load(None, default_file=tmp_path / "absent.toml")
    assert config == Config()
    assert (config.file, config.given) == (None, frozenset())
    assert (config.node.name, config.node.expected_devices) == (None, None)
    assert (config.engine.cycle_s, config.engine.tool_share) == (5.0, 0.2)
    assert [(address.host, address.port) for address in config.web.listen] == [("0.0.0.0", 18910)]
    assert config.tools.npu_smi == "npu-smi"
    assert config.paths.npu_tool_log == Path("/var/log/nputools_LOG_ERR.log")
    assert config.probe("npu_ecc").every_s is None


def test_the_contracts_own_example_loads(file: Path, tmp_path: Path) -> None:
    web = tmp_path / "web.yml"
    web.write_text("{}")
    file.write_text(f"""\
[node]
name = "node17"
expected_devices = 8
language = "en"
[tools]
npu_smi = "npu-smi"
hccn_tool = "hccn_tool"
ibstat = "ibstat"
rdma = "rdma"
perf = "perf"
pcm_pcie = "pcm-pcie"
scontrol = "scontrol"
[paths]
sysfs = "/sys"
procfs = "/proc"
dev = "/dev"
state_dir = "/var/lib/npu-watchd"
runtime_dir = "/run/npu-watchd"
[engine]
cycle = "5s"
[probes.npu_info]
enabled = true
every = "15s"
timeout = "10s"
[web]
listen = ["0.0.0.0:18910"]
config_file = "{web}"
[alertmanager]
urls = ["http://am1:9093", "http://am2:9093"]
resend = "60s"
[quarantine]
act = []
node_when = "any"
prometheus = "http://prom:9090"
max_share = 0.10
[contention]
share = "never"
[limits]
single_bit_errors_per_hour = 100
[limits.chip."910B3"]
overheating_s = "2m"
[logs]
plog = ["/root/ascend/log/*"]
training = ["/data/logs/*.log"]
[metrics]
npu_exporter_names = false
""")
    config = load(file)
    assert config.node.name == "node17"
    assert config.probe("npu_info").every_s == 15.0
    assert config.probe("npu_info").timeout_s == 10.0
    assert config.probe("npu_info").enabled is True
    assert config.alertmanager.urls == ("http://am1:9093", "http://am2:9093")
    assert config.limits["chip"]["910B3"] == {"overheating_s": "2m"}
    assert config.file == file
    assert "probes.npu_info.every" in config.given


@pytest.mark.parametrize("url", ["http://127.0.0.1:8001", "http://[::1]:8001", "http://localhost:8001"])
def test_a_proxy_on_loopback_may_be_plain_http(file: Path, url: str) -> None:
    file.write_text(f"[kubernetes]\napi_url = '{url}'")
    assert load(file).kubernetes.api_url == url


def test_keys_without_effect_are_named(file: Path) -> None:
    file.write_text("""\
[node]
expected_devices = 8
[tools]
rdma = "/usr/sbin/rdma"
[probes]
npu_ecc.every = "2m"
[limits]
flaps = 4
""")
    assert unused(load(file)) == ["tools.rdma"]


UNKNOWN = [
    ("[probes.npu_inof]\nevery = '1m'", "probes.npu_inof: unknown key; did you mean npu_info?"),
    ("[probes]\nnpu_info.evry = '1m'", "probes.npu_info.evry: unknown key; did you mean every?"),
    ("[enginee]", "enginee: unknown key; did you mean engine?"),
    ("npu_smi = 'x'", "npu_smi: unknown key; it belongs in [tools]"),
    ("[metrics]\nx = 1", "metrics.x: unknown key; known here: npu_exporter_names"),
    ("[engine]\ncycle_s = 5", "engine.cycle_s: unknown key; did you mean cycle?"),
    ("[probes]\nzzz = 1", "probes.zzz: unknown key; docs/config.md lists the keys"),
]

WRONG = [
    (
        "[engine]\ncycle = 5",
        'engine.cycle: is the number 5; write a duration such as "15s", "250ms" or "1h30m"',
    ),
    ("engine = '5s'", 'engine: is the text "5s"; write a table'),
    ("[[engine]]\ncycle = '5s'", "engine: is a list; write a table"),
    (
        "[engine]\ntool_share = 0",
        "engine.tool_share: 0 is out of range; write a share above 0 and at most 1, such as 0.2",
    ),
    (
        "[engine]\ntool_share = nan",
        "engine.tool_share: nan is out of range; write a share above 0 and at most 1, such as 0.2",
    ),
    ("[node]\nname = ''", "node.name: is empty; write a name of at most 253 printable characters"),
    (
        '[node]\nname = "a\\nb"',
        'node.name: "a\\nb" has control characters in it; write a name of at most 253 printable characters',
    ),
    (
        "[node]\nexpected_devices = -1",
        "node.expected_devices: -1 is negative; write a whole number, 0 or more, or leave the key out",
    ),
    ("[node]\nlanguage = 'fr'", 'node.language: is the text "fr"; write "en" or "zh"'),
    (
        "[node]\nname = 2026-11-30",
        "node.name: is the date or time 2026-11-30; write a name of at most 253 printable characters",
    ),
    ("[paths]\nsysfs = 'sys'", 'paths.sysfs: "sys" is relative; write an absolute path'),
    (
        "[tools]\nnpu_smi = 'bin/npu-smi'",
        'tools.npu_smi: "bin/npu-smi" is a relative path; write a name on PATH, such as "npu-smi", or an absolute path',
    ),
    (
        "[web]\nlisten = ['0.0.0.0:1', 'nine']",
        'web.listen[1]: "nine" is not host:port; write host:port, such as "0.0.0.0:18910" or "[::1]:18910"',
    ),
    (
        "[web]\nlisten = '0.0.0.0:1'",
        'web.listen: is the text "0.0.0.0:1"; '
        'write a list, each of host:port, such as "0.0.0.0:18910" or "[::1]:18910"',
    ),
    ("[probes]\nnpu_ecc.enabled = 1", "probes.npu_ecc.enabled: is the number 1; write true or false"),
    (
        "[quarantine]\nnode_when = 'most'",
        'quarantine.node_when: is the text "most"; write "any" or "all" or a whole number, 1 or more',
    ),
    (
        "[quarantine]\nnode_when = 0",
        'quarantine.node_when: is the number 0; write "any" or "all" or a whole number, 1 or more',
    ),
    (
        "[quarantine]\nnode_when = true",
        'quarantine.node_when: is true; write "any" or "all" or a whole number, 1 or more',
    ),
    (
        "[quarantine]\nact = ['reboot']",
        'quarantine.act[0]: is the text "reboot"; write "slurm" or "kubernetes" or "command"',
    ),
    ("[limits]\nport_downs = 3", 'limits.port_downs: is no limit; did you mean "port_down_s"?'),
    ("[limits]\nflaps = 'three'", 'limits.flaps: is the text "three"; write a number, in count'),
    (
        "[limits]\nport_down_s = 240",
        'limits.port_down_s: is the number 240; write a duration such as "15s", "250ms" or "1h30m"',
    ),
    (
        "[limits]\nleftover_bytes = 5",
        'limits.leftover_bytes: is the number 5; write a size such as "200MiB" (B, KiB, MiB, GiB, TiB)',
    ),
    ("[limits]\nflaps = -1", "limits.flaps: is -1; write a number above 0; a rule is switched off in [rules] off"),
    ("[limits]\nmissing_polls = 2.5", "limits.missing_polls: is 2.5; write a whole number"),
    (
        '[limits.chip."910B3"]\nhbm_warning_celsius = 95',
        'limits.chip."910B3".hbm_warning_celsius: is 95, and hbm_critical_celsius is 95; '
        "hbm_warning_celsius must be below hbm_critical_celsius",
    ),
    ("[limits]\nchip = 1", 'limits.chip: is no table of tables; write [limits.chip."910B3"]'),
    ("limits = 3", "limits: is the number 3; write a table"),
    (
        "[alertmanager]\nurls = ['am1:9093']",
        'alertmanager.urls[0]: "am1:9093" is no http or https address; write an address such as "http://am1:9093"',
    ),
    (
        "[alertmanager]\nurls = ['http://am1:9093', 'https://watch:geheim@am2:9093']",
        "alertmanager.urls[1]: has a user or a password in it; "
        "write alertmanager.basic_auth_user and alertmanager.basic_auth_password_file instead",
    ),
    (
        "[alertmanager]\nurls = ['http://am1:9093/x/api/v2/alerts']",
        'alertmanager.urls[0]: "http://am1:9093/x/api/v2/alerts" goes on to the API; write "http://am1:9093/x"',
    ),
    (
        "[alertmanager]\nurls = ['http://am1:9093?a=b']",
        'alertmanager.urls[0]: "http://am1:9093?a=b" has a query or a fragment in it; '
        'write an address such as "http://am1:9093"',
    ),
    (
        "[alertmanager]\nproxy = 'http://u:geheim@proxy:3128'",
        "alertmanager.proxy: has a user or a password in it; write the address alone; no credentials are sent there",
    ),
]

CONTRADICTIONS = [
    (
        "[probes.npu_ecc]\nevery = '10s'\ntimeout = '31s'",
        "probes.npu_ecc.timeout: a deadline of 31s is longer than 3 periods of 10s, after which a reading is stale; "
        "one slow call would blind us: shorten timeout or lengthen every",
    ),
    (
        "[probes.npu_info]\ntimeout = '1m'",
        "probes.npu_info.timeout: a deadline of 1m is longer than 3 periods of 15s, after which a reading is stale; "
        "one slow call would blind us: shorten timeout or lengthen every",
    ),
    ("[web]\nlisten = []", 'web.listen: is empty; nobody could scrape: write ["0.0.0.0:18910"], or leave the key out'),
    (
        "[web]\nlisten = ['127.0.0.1:9', '0.0.0.0:9']",
        'web.listen[1]: "0.0.0.0:9" is taken by another entry; write each address once',
    ),
    (
        "[web]\nlisten = ['[::1]:9', '[0:0:0:0:0:0:0:1]:9']",
        'web.listen[1]: "[0:0:0:0:0:0:0:1]:9" is taken by another entry; write each address once',
    ),
    (
        "[web]\nconfig_file = '/nonexistent/web.yml'",
        "web.config_file: there is no file /nonexistent/web.yml; write it, or leave the key out for plain HTTP",
    ),
    (
        "[paths]\nstate_dir = '/run/npu-watchd/state'",
        "paths.state_dir: /run/npu-watchd/state is inside runtime_dir, which a reboot empties; "
        "name a folder on disk, such as /var/lib/npu-watchd",
    ),
    (
        "[alertmanager]\nresend = '5m'",
        "alertmanager.resend: 5m does not fit twice into the 4m that a sent alert lives; "
        "one lost request would resolve it: write 1m",
    ),
    (
        "[alertmanager]\nresend = '10ms'",
        "alertmanager.resend: 10ms is less than a second; nobody wants that many: write 1m",
    ),
    (
        "[alertmanager]\ntimeout = '1m'",
        "alertmanager.timeout: 1m is longer than an eighth of the 4m that a sent alert lives; "
        "an alert would end while it is being sent again: write 5s",
    ),
    (
        "[alertmanager]\nurls = ['http://am1:9093', 'http://am1:9093/']",
        'alertmanager.urls[1]: "http://am1:9093" is there twice; write each once',
    ),
    (
        "[alertmanager]\nbasic_auth_user = 'watch'",
        "alertmanager.basic_auth_user: is of no use without basic_auth_password_file; "
        "write basic_auth_password_file too, or take it out",
    ),
    (
        "[alertmanager]\nbasic_auth_password_file = '/dev/null'",
        "alertmanager.basic_auth_password_file: is of no use without basic_auth_user; "
        "write basic_auth_user too, or take it out",
    ),
    (
        "[alertmanager]\nbasic_auth_user = 'watch'\nbasic_auth_password_file = '/dev/null'\n"
        "bearer_token_file = '/dev/null'",
        "alertmanager.bearer_token_file: is there beside basic_auth_user or basic_auth_password_file; "
        "a request bears one of the two: take out the other",
    ),
    (
        "[alertmanager]\nbasic_auth_user = 'a:b'\nbasic_auth_password_file = '/dev/null'",
        "alertmanager.basic_auth_user: has a colon in it; HTTP cannot send that: choose another user",
    ),
    (
        "[alertmanager]\ncert_file = '/dev/null'",
        "alertmanager.cert_file: is of no use without key_file; write key_file too, or take it out",
    ),
    (
        "[alertmanager]\nkey_file = '/dev/null'",
        "alertmanager.key_file: is of no use without cert_file; write cert_file too, or take it out",
    ),
    (
        "[alertmanager]\nproxy = 'https://proxy:3128'",
        'alertmanager.proxy: "https://proxy:3128" is spoken to in TLS; write a proxy such as "http://proxy:3128"',
    ),
    (
        "[alertmanager]\nca_file = '/nonexistent/ca.crt'",
        "alertmanager.ca_file: there is no file /nonexistent/ca.crt; "
        "write it, or leave the key out where they do not ask for it",
    ),
    ("[quarantine]\nact = ['slurm', 'slurm']", 'quarantine.act[1]: "slurm" is there twice; write each once'),
    (
        "[kubernetes]\ncontext = 'one'",
        "kubernetes.context: is of no use without kubeconfig; write kubeconfig too, or take it out",
    ),
    (
        "[kubernetes]\nkubeconfig = '/dev/null'\ntoken_file = '/dev/null'",
        "kubernetes.token_file: is there beside kubeconfig; a request bears one token: take out one of the two",
    ),
    (
        "[kubernetes]\napi_url = 'http://10.96.0.1'",
        'kubernetes.api_url: "http://10.96.0.1" is plain http; anybody on the way could read the token: write https',
    ),
    (
        "[kubernetes]\ntimeout = '2m'",
        "kubernetes.timeout: 2m is longer than 1m; "
        "a server that hangs would hold up what is decided meanwhile: write 10s",
    ),
    (
        "[kubernetes]\nkubeconfig = '/nonexistent/kubeconfig'",
        "kubernetes.kubeconfig: there is no file /nonexistent/kubeconfig; "
        "write it, or leave the key out for the pod's own",
    ),
    (
        "[quarantine]\nact = ['command']",
        'quarantine.act: has "command", and there is none; write quarantine.command, or take it out',
    ),
    (
        "[quarantine]\ncommand = ['bin/out', 'x']",
        'quarantine.command[0]: "bin/out" is a relative path; write an absolute path, or a name on PATH',
    ),
    (
        "[quarantine]\nevery = '100ms'",
        "quarantine.every: 100ms is less than a second; a controller has many nodes to answer: write 30s",
    ),
    (
        "[slurm]\nnode_name = 'node[1-8]'",
        'slurm.node_name: "node[1-8]" cannot be the name of one node; write it as `sinfo -N` has it',
    ),
    (
        "[slurm]\ntimeout = '2m'",
        "slurm.timeout: 2m is longer than 1m; what is decided meanwhile would wait for it: write 30s",
    ),
]

SYNTAX: list[tuple[str | bytes, str]] = [
    ("[engine]\ncycle 5", "line 2, column 7: no TOML: expected '=' after a key in a key/value pair; mend this line"),
    ("a = [1,\n", "line 1, the last: no TOML: invalid value; mend this line"),
    (b"\xef\xbb\xbf[node]\n", "starts with a byte order mark; save it as UTF-8 without one"),
    (b"\xff\xfe[\x00", "starts with a byte order mark; save it as UTF-8 without one"),
    (b'[node]\nname = "\xe9"\n', "line 2, column 9: is not UTF-8; save the file as UTF-8"),
    ("x = " + "[" * 100000, "is nested too deeply; write plain tables"),
    (
        "[node]\nexpected_devices = " + "9" * 5000,
        "a number in it is too long to read; write a shorter one",
    ),
    ("#" * (1 << 20) + "\n", "is larger than 1 MiB; name a config file"),
]


@pytest.mark.parametrize(
    ("text", "message"), [*UNKNOWN, *WRONG, *CONTRADICTIONS, *SYNTAX], ids=lambda text: str(text)[:40]
)
def test_a_bad_file_is_refused_with_its_key_and_the_cure(file: Path, text: str | bytes, message: str) -> None:
    assert refusal(file, text) == message


def test_two_addresses_that_do_not_collide_are_fine(file: Path) -> None:
    file.write_text("[web]\nlisten = ['127.0.0.1:9', '[::]:9', '127.0.0.1:0', '127.0.0.1:0']")
    assert load(file).web.listen == ("127.0.0.1:9", "[::]:9", "127.0.0.1:0", "127.0.0.1:0")


@pytest.mark.parametrize(
    ("every", "timeout", "timeout_s"), [("600ms", "1800ms", 1.8), ("700ms", "2100ms", 2.1), ("10s", "30s", 30.0)]
)
def test_a_deadline_of_just_three_periods_is_fine(file: Path, every: str, timeout: str, timeout_s: float) -> None:
    file.write_text(f"[probes.npu_ecc]\nevery = '{every}'\ntimeout = '{timeout}'")
    assert load(file).probe("npu_ecc").timeout_s == timeout_s


def test_a_file_that_was_asked_for_must_exist(file: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file; write it with `npu-watchd config init`"):
        load(file)


def test_a_folder_or_a_pipe_is_no_config(tmp_path: Path, file: Path) -> None:
    with pytest.raises(ConfigError, match="is no regular file"):
        load(tmp_path)
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="is no regular file"):
        load(file)


def test_a_file_that_may_not_be_read_is_refused_even_as_the_default(file: Path) -> None:
    loop = file.with_name("loop.toml")
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match="cannot be read \\(Too many levels of symbolic links\\)"):
        load(None, default_file=loop)


def test_a_stream_without_period_or_deadline_contradicts_nothing(file: Path) -> None:
    file.write_text("[probes]\nnpu_tool_log.enabled = false")
    assert load(file, defaults=DEFAULTS).probe("npu_tool_log").enabled is False


def test_a_built_in_deadline_gives_way_to_a_short_period(file: Path) -> None:
    file.write_text("[probes]\nnpu_info.every = '2s'")
    config = load(file, defaults=DEFAULTS)
    assert probe_times(config, DEFAULTS, "npu_info") == (2.0, 2.0)
    assert probe_times(Config(), DEFAULTS, "npu_info") == (15.0, 10.0)
    assert probe_times(Config(), {}, "npu_info") == (None, None)


VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(),
        st.sampled_from(["15s", "200MiB", "/x", "npu-smi", "0.0.0.0:1", "http://am:1", "any", "slurm", "never"]),
        st.dates(),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([key.name for key in KEYS]), VALUES)
def test_any_value_under_any_key_is_taken_or_refused_by_name(key: str, value: object) -> None:
    table: dict[str, Any] = {}
    inner = table
    *sections, last = key.split(".")
    for section in sections:
        inner = inner.setdefault(section, {})
    inner[last] = value
    answer = converted(table)
    if isinstance(answer, ConfigError):
        assert answer.key.startswith(key)
        assert answer.cure
    else:
        assert BY_NAME[key].value_in(answer) is not None


def converted(table: dict[str, Any]) -> Sections | ConfigError:
    try:
        return file_of_config.sections(Path("config.toml"), table)
    except ConfigError as refused:
        return refused


def test_single_devices_may_be_shared_otherwise_than_the_rest(file: Path) -> None:
    file.write_text('[contention]\nshare = "never"\n[contention.devices]\n4 = "allowed"\n"6-7" = "same_user"\n')
    config = load(file)
    assert shares_of(config) == {"4": "allowed", "6": "same_user", "7": "same_user"}
    shown = {key: (value, source) for key, value, source in effective(config, DEFAULTS)}
    assert shown["contention.devices.4"] == ('"allowed"', "file")
    assert shown["contention.devices.6-7"] == ('"same_user"', "file")


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ('"7-4" = "never"', 'contention.devices."7-4": is a range that ends before it begins; write "4-7"'),
        (
            '"all" = "never"',
            'contention.devices."all": names no device; write a device_id or a range of them, such as "4" or "4-7"',
        ),
        (
            '"" = "never"',
            'contention.devices."": names no device; write a device_id or a range of them, such as "4" or "4-7"',
        ),
        (
            '"-1" = "never"',
            'contention.devices."-1": names no device; write a device_id or a range of them, such as "4" or "4-7"',
        ),
        (
            '"99999" = "never"',
            'contention.devices."99999": names no device; write a device_id or a range of them, such as "4" or "4-7"',
        ),
        (
            '"4" = "shared"',
            'contention.devices."4": is the text "shared"; write "never" or "same_user" or "vnpu" or "allowed"',
        ),
        ('"4" = true', 'contention.devices."4": is true; write "never" or "same_user" or "vnpu" or "allowed"'),
        (
            '"4-7" = "never"\n"5" = "allowed"',
            'contention.devices."5": device 5 is in "4-7" too; write each device once',
        ),
    ],
)
def test_a_device_that_cannot_be_meant_is_named(file: Path, devices: str, message: str) -> None:
    assert refusal(file, f"[contention.devices]\n{devices}\n") == message


def test_a_device_beyond_those_that_are_expected_is_a_contradiction(file: Path) -> None:
    text = '[node]\nexpected_devices = 8\n[contention.devices]\n"4-8" = "allowed"\n'
    assert refusal(file, text) == (
        'contention.devices."4-8": there is no device 8 where node.expected_devices is 8; the last device is 7'
    )


def test_devices_that_are_no_table_are_named(file: Path) -> None:
    assert refusal(file, '[contention]\ndevices = "4"\n').startswith(
        'contention.devices: is the text "4"; write a table'
    )
