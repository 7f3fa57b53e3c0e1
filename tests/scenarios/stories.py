"""Cases that take hours or weeks, or that turn on a count: told snapshot by snapshot, judged by the real rules."""

from __future__ import annotations

from dataclasses import replace

from npu_watchd.model.jobs import Attribution, DeviceJobs, Job, Scheduler
from npu_watchd.model.pcie import PcieErrors
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.model.records import MemoryErrors
from tests.rules.test_links import link, port
from tests.scenarios.label import QUARANTINES, WARNING, Case, Expected, Story, npu
from tests.scenarios.label import port as key_of
from tests.scenarios.site import Site

HOUR_S, DAY_S = 3600.0, 86400.0
TIMEOUT = Failure(FailureKind.TIMEOUT, "npu-smi info -t ecc -i 3: no answer within 10 s")


def ecc(**counts: int) -> dict[str, MemoryErrors]:
    return {"hbm": MemoryErrors(**{"single_bit": 0, "double_bit": 0, **counts})}


def aer(correctable: int = 0, fatal: int = 0) -> PcieErrors:
    return PcieErrors("0000:83:00.0", correctable=correctable, nonfatal=0, fatal=fatal)


def about_the_limit(site: Site) -> None:
    """21 corrected errors an hour on device 3, one at a time, for three hours, then none."""
    site.run(0, 57)
    for count in range(1, 64):
        site.change(3, memory_errors=ecc(single_bit=count))
        site.run(site.now_s + 114, 57)
    site.run(site.now_s + 1.2 * HOUR_S, 60)


def worse_than_its_past(site: Site) -> None:
    """Device 3 has had ten an hour for a week; then 60 an hour."""
    count = 0
    for _ in range(8 * 24):
        count += 10
        site.change(3, memory_errors=ecc(single_bit=count))
        site.run(site.now_s, HOUR_S)
    site.change(3, memory_errors=ecc(single_bit=count + 60))
    site.run(8 * DAY_S + 600, 60)


def worse_than_its_neighbours(site: Site) -> None:
    """A hot hour in which every device corrects 30 errors, device 3 does 200."""
    site.run(60, 60)
    for number in range(8):
        site.change(number, memory_errors=ecc(single_bit=200 if number == 3 else 30))
    site.run(300, 60)


def blind_spell(site: Site) -> None:
    """The ECC of device 3 cannot be read from 60 s to 600 s, in which 25 errors come."""
    site.run(60)
    site.change(3, blind={"npu_ecc": TIMEOUT}, memory_errors={})
    site.run(600)
    site.change(3, blind={}, memory_errors=ecc(single_bit=25))
    site.run(900)


def two_resets(site: Site) -> None:
    """8 errors, a reset, 8 more, a reset, 8 more: 24 in an hour, although no reading shows more than 8."""
    site.run(60)
    for begins_s in (120, 420, 720):
        site.change(3, memory_errors=ecc(single_bit=8))
        site.run(begins_s + 120)
        site.change(3, memory_errors=ecc())
        site.run(begins_s + 180)
        # Another reading that says the same: now the fall is believed.
        site.change(3, memory_errors=ecc())
        site.run(begins_s + 285)


def shaken(site: Site) -> None:
    """Corrected errors of device 5's link: 200 in five minutes, in the same minute as the driver is upgraded."""
    for number in range(8):
        site.change(number, pcie_link=link(), pcie_errors=aer())
    site.run(60)
    site.driver = "25.0.rc1"
    site.change(5, pcie_errors=aer(correctable=200))
    site.run(300)


def comes_and_goes(site: Site) -> None:
    """A port is down for 40 s at noon, at four and at eight; the node is rebooted in between."""
    key = key_of("mlx5_0")
    site.ports[key] = port()
    for at_s in (600.0, 4 * HOUR_S, 8 * HOUR_S):
        site.run(at_s, 300)
        site.ports[key] = port(up=False)
        site.skip_to(at_s + 60)
        site.run(at_s + 105)
        site.ports[key] = port()
        site.run(at_s + 150)
        if at_s < HOUR_S:
            site.reboot()
    site.run(9 * HOUR_S, 300)


def codes_of_a_week(site: Site) -> None:
    """0x80E01801 once a day is nobody's alarm; then twice within seven hours."""
    for at_s in (DAY_S, 2.2 * DAY_S, 2.5 * DAY_S):
        site.run(at_s, 900)
        site.change(2, error_codes=("80e01801",))
        site.run(at_s + 1800, 900)
        site.change(2, error_codes=())
        site.run(at_s + 3600, 900)


def sagging(site: Site) -> None:
    """A fatal PCIe error seven hours before the daemon is restarted, then a clean day."""
    for number in range(8):
        site.change(number, pcie_link=link(), pcie_errors=aer())
    site.run(60)
    site.change(6, pcie_errors=aer(fatal=1))
    site.run(7 * HOUR_S, 300)
    site.restart()
    site.run(26 * HOUR_S, 300)


def cleared(site: Site) -> None:
    """`-t ecc` is cleared by hand while 15 corrected errors stand, and ten more come that day."""
    site.change(3, memory_errors=ecc(single_bit=15, single_bit_lifetime=15))
    site.run(600)
    site.change(3, memory_errors=ecc(single_bit_lifetime=15))
    site.run(660)
    site.change(3, memory_errors=ecc(single_bit_lifetime=15))
    site.run(720)
    site.change(3, memory_errors=ecc(single_bit=10, single_bit_lifetime=25))
    site.run(2 * HOUR_S, 60)


def one_false_zero(site: Site) -> None:
    """Device 3 has 700 old corrected errors, and once a reading shows 0."""
    site.change(3, memory_errors=ecc(single_bit=700))
    site.run(600)
    site.change(3, memory_errors=ecc())
    site.run(645)
    site.change(3, memory_errors=ecc(single_bit=701))
    site.run(1200)


def other_chip(site: Site) -> None:
    """After a shutdown there is another chip in the place of device 3, with a long life behind it."""
    site.identify({number: f"SN{number}" for number in range(8)})
    site.each(memory_errors=ecc(single_bit_lifetime=2), pcie_link=link(), pcie_errors=aer())
    site.run(600)
    site.reboot(1800)
    site.identify({3: "SN9000"})
    site.change(3, memory_errors=ecc(single_bit_lifetime=9000, double_bit_lifetime=7, double_bit_isolated_pages=7))
    site.run(2 * HOUR_S, 60)


def drifting_clock(site: Site) -> None:
    """The clock jumps by a day now and then, both ways, for half a day; ten corrected errors an hour all the while."""
    count = 0
    for step in range(72):
        count += 2 if step % 6 else 0
        site.wall_off_s = (0.0, DAY_S, -DAY_S)[step % 3]
        site.change(3, memory_errors=ecc(single_bit=count))
        site.run(600.0 * step, 60)


def upgraded(site: Site) -> None:
    """The driver is upgraded three times; each time the counts since reset begin anew, from what the upgrade cost."""
    site.each(pcie_link=link(), pcie_errors=aer(correctable=90))
    for version in ("24.1.0", "25.2.0", "25.5.1"):
        site.each(memory_errors=ecc(single_bit=5))
        site.run(site.now_s + HOUR_S, 60)
        site.driver = version
        site.each(memory_errors=ecc(single_bit=0))
        site.run(site.now_s + HOUR_S, 60)


def blind_night(site: Site) -> None:
    """Nobody can read anything for eight hours, lesser probes alone, and nothing has happened meanwhile."""
    site.each(pcie_link=link(), pcie_errors=aer(correctable=40))
    site.run(600)
    gone = dict.fromkeys(("pcie_link", "pcie_aer", "npu_usages", "npu_temp"), TIMEOUT)
    site.each(blind=gone, pcie_link=None, pcie_errors=None)
    site.run(8 * HOUR_S, 300)
    site.each(blind={}, pcie_link=link(), pcie_errors=aer(correctable=41))
    site.run(9 * HOUR_S, 60)


def same_for_all(site: Site) -> None:
    """A hot hour: every device corrects 30 errors, one of them twice as many."""
    site.run(60)
    for number in range(8):
        site.change(number, memory_errors=ecc(single_bit=60 if number == 3 else 30))
    site.run(1.5 * HOUR_S, 60)


def ten_reboots(site: Site) -> None:
    """Ten reboots in a night; each costs every device three corrected errors and its link a retraining."""
    for _ in range(10):
        site.each(memory_errors=ecc(single_bit=3), pcie_link=replace(link(), transfers_per_second=2.5e9))
        site.run(site.now_s + 30)
        site.each(pcie_link=link(), pcie_errors=aer(correctable=4))
        site.run(site.now_s + 3000, 60)
        site.reboot()
        site.each(memory_errors=ecc())


def long_away(site: Site) -> None:
    """The daemon is not there for three days, in which every count grows as slowly as it always does."""
    key = key_of("mlx5_0")
    site.ports[key] = port(counts={"local_ack_timeout_err": 0, "symbol_error": 0})
    site.each(memory_errors=ecc(), pcie_link=link(), pcie_errors=aer())
    site.run(600)
    site.restart(3 * DAY_S)
    site.ports[key] = port(counts={"local_ack_timeout_err": 9000, "symbol_error": 400})
    site.each(memory_errors=ecc(single_bit=30), pcie_errors=aer(correctable=900))
    site.run(site.now_s + 2 * HOUR_S, 60)


def away_and_climbing(site: Site) -> None:
    """The daemon is not there for three days, in which 30 corrected errors come, and 25 in its first ten minutes."""
    site.each(memory_errors=ecc())
    site.run(600, 60)
    site.restart(3 * DAY_S)
    site.change(3, memory_errors=ecc(single_bit=30))
    site.run(site.now_s + 300, 60)
    site.change(3, memory_errors=ecc(single_bit=55))
    site.run(site.now_s + 300, 60)


def probes_away(site: Site) -> None:
    """Nobody can read the ports' and the links' counts for a night; they grow at a harmless pace."""
    key = key_of("mlx5_0")
    site.ports[key] = port(counts={"local_ack_timeout_err": 0, "symbol_error": 0})
    site.each(pcie_link=link(), pcie_errors=aer())
    site.run(600, 30)
    site.each(blind={"pcie_aer": TIMEOUT}, pcie_errors=None)
    site.ports[key] = replace(port(), counters=None)
    site.run(8 * HOUR_S, 300)
    site.each(blind={}, pcie_errors=aer(correctable=400))
    site.ports[key] = port(counts={"local_ack_timeout_err": 3000, "symbol_error": 300})
    site.run(9 * HOUR_S, 60)


def integrity_meanwhile(site: Site) -> None:
    """One integrity error of a host port comes in a night without the daemon."""
    key = key_of("mlx5_0")
    site.ports[key] = port(counts={"local_link_integrity_errors": 0})
    site.run(600, 30)
    site.restart(8 * HOUR_S)
    site.ports[key] = port(counts={"local_link_integrity_errors": 1})
    site.run(site.now_s + 300, 30)


def jobs_of(site: Site, numbers: range, job: int) -> None:
    """One job of Slurm on these devices; nobody on the others."""
    for number in range(8):
        there = [Attribution(npu(number), 61001, "python3", 1, job=Job(Scheduler.SLURM, str(job), "alice"))]
        site.change(number, jobs=DeviceJobs(tuple(there if number in numbers else ())))


def together(site: Site, at_s: float) -> None:
    """0x80E01801 comes to devices 0 to 3, fifteen seconds after each other, and goes after half an hour."""
    for number in range(4):
        site.skip_to(at_s + 15 * number)
        site.change(number, error_codes=("80e01801",))
        site.run(site.now_s)
    site.run(at_s + 1800)
    for number in range(4):
        site.change(number, error_codes=())
    site.run(at_s + 1860)


def software_twice(site: Site) -> None:
    """A job on devices 0 to 3 brings the same code to all of them, twice in ten hours, over a restart."""
    jobs_of(site, range(4), 4711)
    site.run(60)
    together(site, 600)
    site.run(9 * HOUR_S, 900)
    site.restart()
    jobs_of(site, range(4), 4712)
    together(site, 10 * HOUR_S)
    site.run(12 * HOUR_S, 900)


def nobody_knows(site: Site) -> None:
    """The same while nobody can tell the jobs."""
    site.run(60)
    together(site, 600)
    site.run(9 * HOUR_S, 900)
    together(site, 10 * HOUR_S)


def one_of_four(site: Site) -> None:
    """A job has devices 0 to 3 all day, and the code comes to device 2 alone, twice."""
    jobs_of(site, range(4), 4711)
    site.run(60)
    for at_s in (600.0, 10 * HOUR_S):
        site.run(at_s - 15, 600)
        site.skip_to(at_s)
        site.change(2, error_codes=("80e01801",))
        site.run(at_s + 1800)
        site.change(2, error_codes=())
        site.run(at_s + 1860)
    site.run(12 * HOUR_S, 900)


def _level(number: int, at_s: float, late_s: float = 0) -> Expected:
    """The code itself is a warning while it is there."""
    over = (at_s + 1800, at_s + 1860)
    return Expected("error_code", npu(number), (WARNING,), at_s + late_s, 15, over=over)


def _climb(number: int, at_s: float, every_s: float = 60.0, **more: object) -> Expected:
    return Expected("hbm_single_bit", npu(number), (WARNING,), at_s, every_s, **more)  # type: ignore[arg-type]


FAULT_STORIES: tuple[Case, ...] = (
    Case(
        "just above the limit for three hours",
        "21 corrected errors an hour: one finding that stands until an hour is below half the limit, not twenty",
        Story("910B3", about_the_limit),
        (_climb(3, 57 + 19 * 171, over=(57 + 53 * 171 + HOUR_S, 57 + 53 * 171 + HOUR_S + 120)),),
    ),
    Case(
        "worse than its own past",
        "a device that has had ten corrected errors an hour for a week has 60",
        Story("910B3", worse_than_its_past),
        (_climb(3, 8 * DAY_S),),
    ),
    Case(
        "worse than its neighbours",
        "all correct 30 errors in an hour, device 3 does 200",
        Story("910B3", worse_than_its_neighbours),
        (_climb(3, 60),),
    ),
    Case(
        "errors in a blind spell",
        "25 corrected errors come while nobody can read them, and count when somebody can",
        Story("910B3", blind_spell),
        (_climb(3, 600),),
    ),
    Case(
        "errors after three days without the daemon",
        "25 corrected errors in ten minutes are found, although 30 older ones were seen just before",
        Story("910B3", away_and_climbing),
        (_climb(3, 600 + 60 + 3 * DAY_S + 300),),
    ),
    Case(
        "an integrity error while the daemon was away",
        "one is too many, whenever it came",
        Story("910B3", integrity_meanwhile),
        (Expected("roce_errors", key_of("mlx5_0"), (WARNING,), 630 + 8 * HOUR_S, 30),),
    ),
    Case(
        "errors between resets",
        "three times eight corrected errors with resets in between are 24",
        Story("910B3", two_resets),
        (_climb(3, 720),),
    ),
    Case(
        "errors during a driver upgrade",
        "a new driver sets no PCIe count to zero: 200 corrected errors are 200",
        Story("910B3", shaken),
        (Expected("pcie_errors", npu(5), (WARNING,), 60, 30),),
    ),
    Case(
        "a port falls every four hours",
        "three times in eight hours, over a reboot, is flapping",
        Story("910B3", comes_and_goes),
        (Expected("roce_flap", key_of("mlx5_0"), (WARNING,), 8 * HOUR_S + 105, 30),),
    ),
    Case(
        "a code once a day, then twice",
        "0x80E01801 comes every day, and at last twice within seven hours",
        Story("910B3", codes_of_a_week),
        (
            *(
                Expected("error_code", npu(2), (WARNING,), at_s, 900, over=(at_s + 1800, at_s + 3600))
                for at_s in (DAY_S, 2.2 * DAY_S, 2.5 * DAY_S)
            ),
            Expected("error_code_repeats", npu(2), (QUARANTINES,), 2.5 * DAY_S, 900),
        ),
    ),
    Case(
        "a code of a whole job, twice",
        "0x80E01801 comes to the four devices of one job together, and again to those of the next job: software",
        Story("910B3", software_twice),
        tuple(_level(number, at_s, 15 * number) for at_s in (600, 10 * HOUR_S) for number in range(4)),
    ),
    Case(
        "a code of four devices of which nobody knows the jobs",
        "the same; without a job nobody may call it software",
        Story("A3", nobody_knows),
        (
            *(_level(number, at_s, 15 * number) for at_s in (600, 10 * HOUR_S) for number in range(4)),
            *(
                Expected("error_code_repeats", npu(number), (QUARANTINES,), 10 * HOUR_S + 15 * number, 15)
                for number in range(4)
            ),
        ),
    ),
    Case(
        "a code of one device of a job, twice",
        "0x80E01801 comes to device 2 alone, of the four that the job has",
        Story("910B3", one_of_four),
        (
            *(_level(2, at_s) for at_s in (600, 10 * HOUR_S)),
            Expected("error_code_repeats", npu(2), (QUARANTINES,), 10 * HOUR_S, 15),
        ),
    ),
    Case(
        "a fatal PCIe error and a clean day",
        "the finding outlives a restart, and ends when the error is a day old",
        Story("910B3", sagging),
        (Expected("pcie_errors", npu(6), (QUARANTINES,), 60, 30, over=(60 + DAY_S, 60 + DAY_S + 700)),),
    ),
)
UGLY_STORIES: tuple[Case, ...] = (
    Case(
        "three days without the daemon",
        "what grew meanwhile, slowly, is no burst of the minute in which it is first seen",
        Story("910B3", long_away),
    ),
    Case("a night without the counts", "the same where only the probes were away", Story("910B3", probes_away)),
    Case("counts cleared by hand", "`-t ecc` is cleared: 15, then 0, then 10", Story("910B3", cleared)),
    Case("one false zero", "a reading of 0 between 700 and 701 is no reset", Story("910B3", one_false_zero)),
    Case("another chip", "a chip is replaced by one with a long life behind it", Story("910B3", other_chip)),
    Case("a clock that jumps by days", "both ways, every ten minutes, for half a day", Story("910B3", drifting_clock)),
    Case("three driver upgrades", "each sets the counts since reset to zero", Story("910B3", upgraded)),
    Case("a blind night", "lesser probes cannot read for eight hours", Story("910B3", blind_night)),
    Case("the same for all", "a hot hour in which every device corrects 30 errors", Story("910B3", same_for_all)),
    Case("ten reboots", "each with a few corrected errors of its own", Story("910B3", ten_reboots)),
)
