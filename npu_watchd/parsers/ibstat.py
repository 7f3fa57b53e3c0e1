"""`ibstat`: the host's RDMA ports, RoCE and InfiniBand.

ibstat reads sysfs and stops at the first device that it cannot read (`ibpanic`, on stderr, exit 255), so the ports that
it printed before are good and the others are unknown. On a node without an HCA it prints nothing and exits 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from npu_watchd.model.fabric import RdmaPort, RdmaPorts
from npu_watchd.model.reading import Failure, FailureKind, Output
from npu_watchd.parsers import port_fields, port_states
from npu_watchd.parsers.lines import Line, ParseError, lines_of

_HEADER = re.compile(r"(?P<unit>CA|Switch|Router|(?:iWARP )?RNIC|usNIC|\?\?\?):? '(?P<ca>[^']{1,64})'")
_PORT = re.compile(r"Port (?P<port>\d{1,5}):", re.ASCII)
_FIELD = re.compile(r"(?P<key>[A-Za-z?][A-Za-z? ]{0,30}):(?:\s+(?P<value>.*))?")

_WARNING = re.compile(r"ibwarn: ")
# What the program, its libraries or the shell say when it fails; the cure where there is one.
_FAILURES: tuple[tuple[re.Pattern[str], FailureKind, str], ...] = (
    (re.compile(r"ibpanic: .*: Permission denied$"), FailureKind.DENIED, "run npu-watchd as root, on the host"),
    (re.compile(r"ibpanic: .*can't be found"), FailureKind.EXIT, "there is no such device; see `ibstat -l`"),
    (
        re.compile(r"ibpanic: .*stat of IB device"),
        FailureKind.EXIT,
        "ibstat gives up at the first device that it cannot read; the devices after it are unknown",
    ),
    (re.compile(r"ibpanic: |\w+: iberror: "), FailureKind.EXIT, ""),
    (re.compile(r".*error while loading shared libraries"), FailureKind.MISSING, "install infiniband-diags whole"),
    (re.compile(r".*(?:command not found|: not found)$"), FailureKind.MISSING, "install infiniband-diags"),
)

_Read = Callable[[Line, str], Any]
_CA_FIELDS: dict[str, tuple[str, _Read]] = {
    "Firmware version": ("firmware", port_fields.word),
    "Hardware version": ("hardware_version", port_fields.word),
    "Node GUID": ("node_guid", port_fields.guid),
    "System image GUID": ("system_image_guid", port_fields.guid),
    "Number of ports": ("number_of_ports", port_fields.count),
}
_PORT_FIELDS: dict[str, tuple[str, _Read]] = {
    "State": ("state", port_states.state),
    "Physical state": ("physical_state", port_states.physical_state),
    "Rate": ("rate_gbps", port_fields.rate_gbps),
    "Base lid": ("base_lid", port_fields.count),
    "LMC": ("lmc", port_fields.count),
    "SM lid": ("sm_lid", port_fields.count),
    "Capability mask": ("capability_mask", port_fields.mask),
    "Port GUID": ("port_guid", port_fields.guid),
    "Link layer": ("link_layer", port_fields.word),
}
# None of these words is the beginning of another one, so that even at a cut end of the text they are whole.
_WHOLE = {
    "State": {"Active", "Down", "Initializing"},
    "Physical state": {"LinkUp", "Disabled", "Polling"},
    "Link layer": {"InfiniBand", "Ethernet"},
}


@dataclass(slots=True)
class _Unit:
    """A CA, or one of its ports, while its lines come in."""

    line: Line
    name: str
    values: dict[str, Any] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    fault: ParseError | None = None
    ports: dict[int, _Unit] = field(default_factory=dict)

    def take(self, line: Line, key: str, value: str, known: dict[str, tuple[str, _Read]]) -> None:
        """Raises ParseError for a key that comes twice: these are two units' lines."""
        if key in self.seen:
            raise line.refuse(f"the same key twice for {self.name}")
        self.seen.add(key)
        name, read = known[key]
        try:
            self.values[name] = read(line, value)
        except ParseError as error:
            self.fault = self.fault or error


@dataclass(slots=True)
class _Answer:
    units: list[_Unit] = field(default_factory=list)
    port: _Unit | None = None
    warnings: list[str] = field(default_factory=list)
    errors: list[ParseError] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def parse(text: str) -> RdmaPorts:
    """All ports, in the tool's order; stderr may be mixed in. No text at all: a node without an HCA.

    A port with a value that cannot be trusted is left out, and its line is in `errors`. Raises ParseError where the
    answer has no port but an error, and where ports run into one another because lines are missing.
    """
    return _result(_answer(text))


def read(output: Output) -> RdmaPorts | Failure:
    """The same of a finished run: what is on stderr joins the errors, as does an exit code that nobody explains."""
    try:
        answer = _answer(output.text)
        for line in lines_of(output.stderr):
            if not _remark(line, answer):
                answer.warnings.append(line.text.strip())
        if output.exit_code != 0 and not answer.errors:
            code = f"ibstat ended with exit code {output.exit_code} and did not say why"
            answer.errors.append(ParseError(0, code, FailureKind.EXIT))
        return _result(answer)
    except ParseError as error:
        return error.failure()


def _answer(text: str) -> _Answer:
    answer = _Answer()
    for line in lines_of(text):
        if not _remark(line, answer):
            _take(line, line.text.strip(), answer)
    return answer


def _remark(line: Line, answer: _Answer) -> bool:
    words = line.text.strip()
    if _WARNING.match(words):
        answer.warnings.append(words)
        return True
    for pattern, kind, cure in _FAILURES:
        if pattern.match(words[:400]):
            answer.errors.append(ParseError(line.number, f"{words} ({cure})" if cure else words, kind))
            return True
    return False


def _take(line: Line, words: str, answer: _Answer) -> None:
    header = _HEADER.fullmatch(words)
    if header is not None:
        answer.port = None
        answer.units.append(_Unit(line, header["ca"]))
        return
    port = _PORT.fullmatch(words)
    if port is not None:
        _open_port(line, int(port["port"]), answer)
        return
    entry = _FIELD.fullmatch(words)
    if entry is None:
        answer.errors.append(line.refuse("no line of ibstat" if line.ended else "cut off"))
        return
    key, value = entry["key"].strip(), entry["value"] or ""
    if line.ended or value in _WHOLE.get(key, ()):
        _take_field(line, key, value, answer)
    else:
        answer.errors.append(line.refuse("cut off"))


def _open_port(line: Line, number: int, answer: _Answer) -> None:
    if not answer.units:
        raise line.refuse("a port without its CA")
    unit = answer.units[-1]
    if number in unit.ports:
        raise line.refuse(f"the same port twice for {unit.name}")
    answer.port = unit.ports[number] = _Unit(line, f"{unit.name} port {number}")


def _take_field(line: Line, key: str, value: str, answer: _Answer) -> None:
    if key in _PORT_FIELDS:
        if answer.port is None:
            raise line.refuse("a port's line without its port")
        answer.port.take(line, key, value, _PORT_FIELDS)
    elif key in _CA_FIELDS or key.endswith(" type"):
        if not answer.units or answer.port is not None:
            raise line.refuse("a CA's line without its CA")
        answer.units[-1].take(line, key, value, _CA_FIELDS | {key: _CA_FIELDS.get(key, ("ca_type", port_fields.word))})
    elif answer.units:
        answer.unknown.append(key)
    else:
        answer.errors.append(line.refuse("no line of ibstat"))


def _result(answer: _Answer) -> RdmaPorts:
    ports: list[RdmaPort] = []
    known: set[str] = set()
    for unit in answer.units:
        if unit.name in known:
            raise unit.line.refuse("the same CA twice")
        known.add(unit.name)
        ports.extend(_ports(unit, answer.errors))
    if not ports and (answer.errors or answer.units):
        raise _first(answer.errors) or answer.units[0].line.refuse("a CA without its ports")
    return RdmaPorts(
        tuple(ports),
        tuple(error.problem if error.kind is not FailureKind.UNPARSEABLE else str(error) for error in answer.errors),
        tuple(answer.warnings),
        tuple(dict.fromkeys(answer.unknown)),
    )


def _ports(unit: _Unit, errors: list[ParseError]) -> Iterable[RdmaPort]:
    announced = unit.values.pop("number_of_ports", None)
    if announced is not None and announced != len(unit.ports):
        errors.append(unit.line.refuse(f"{announced} ports announced, {len(unit.ports)} listed"))
    for number, port in unit.ports.items():
        fault = unit.fault or port.fault
        if fault is None:
            yield RdmaPort(ca=unit.name, port=number, **unit.values, **port.values)
        else:
            errors.append(fault)


def _first(errors: Iterable[ParseError]) -> ParseError | None:
    """The tool's own words explain more than a line that we could not read."""
    ordered = sorted(errors, key=lambda error: error.kind is FailureKind.UNPARSEABLE)
    return ordered[0] if ordered else None
