"""Every Alertmanager of the set hears of the newest findings: a thread for each, so that none waits for another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from npu_watchd.model.finding import Finding
from npu_watchd.model.reading import Failure, FailureKind, Tick
from npu_watchd.model.snapshot import Notifications
from npu_watchd.sinks.alertmanager.alert import alert_of, document
from npu_watchd.sinks.alertmanager.client import Access, Client, target_of
from npu_watchd.sinks.alertmanager.outbox import FIRST_RETRY_S, Batch, Outbox


class Log(Protocol):
    """structlog's `warning`: an event and its facts."""

    def __call__(self, event: str, /, **facts: object) -> None: ...


class Settings(Protocol):
    """`[alertmanager]` of the config, which this layer may not import."""

    @property
    def urls(self) -> Sequence[str]: ...

    @property
    def resend_s(self) -> float: ...

    @property
    def timeout_s(self) -> float: ...

    @property
    def basic_auth_user(self) -> str | None: ...

    @property
    def basic_auth_password_file(self) -> Path | None: ...

    @property
    def bearer_token_file(self) -> Path | None: ...

    @property
    def ca_file(self) -> Path | None: ...

    @property
    def cert_file(self) -> Path | None: ...

    @property
    def key_file(self) -> Path | None: ...

    @property
    def insecure_skip_verify(self) -> bool: ...

    @property
    def server_name(self) -> str | None: ...

    @property
    def proxy(self) -> str | None: ...

    @property
    def runbook_url(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class _Publication:
    findings: tuple[Finding, ...]
    at: Tick


@dataclass(frozen=True, slots=True)
class _Orders:
    """What a sender goes by; replaced as a whole when the config is new."""

    client: Client
    resend_s: float
    node: str
    runbook_base: str
    language: str


class Pusher:
    """`publish` from the engine's cycle, `tally` for its metrics, `take` for a new config, `close` at the end.

    None of them but `close` waits for anything: a dead, slow or redirecting Alertmanager costs a cycle nothing.
    """

    def __init__(
        self, settings: Settings, node: str, clock: Callable[[], Tick], log: Log, language: str = "en"
    ) -> None:
        """Starts a thread for each URL; without URLs it does nothing. language: of the alerts' texts, "en" or "zh"."""
        self._clock = clock
        self._log = log
        self._newest: _Publication | None = None
        self._senders: Mapping[str, _Sender] = {}
        self.take(settings, node, language)

    def publish(self, findings: Iterable[Finding], now: Tick) -> None:
        """All that is wrong at `now`; what was there before and no longer is, is resolved."""
        self._newest = _Publication(tuple(findings), now)
        for sender in self._senders.values():
            sender.wake.set()

    def take(self, settings: Settings, node: str, language: str = "en") -> None:
        """Go on with this config. What is pending for a URL that stays is kept, also where it is reached otherwise.

        A URL that is gone is told nothing more: its alerts end by themselves within four minutes.
        """
        access = Access(
            timeout_s=settings.timeout_s,
            user=settings.basic_auth_user,
            password_file=settings.basic_auth_password_file,
            bearer_token_file=settings.bearer_token_file,
            ca_file=settings.ca_file,
            cert_file=settings.cert_file,
            key_file=settings.key_file,
            insecure_skip_verify=settings.insecure_skip_verify,
            server_name=settings.server_name,
            proxy=settings.proxy,
        )
        before, kept = self._senders, {}
        for url in settings.urls:
            orders = _Orders(Client(url, access), settings.resend_s, node, settings.runbook_url or "", language)
            kept[url] = before[url] if url in before else _Sender(self._clock, self._log, lambda: self._newest, orders)
            kept[url].orders = orders
        self._senders = kept
        for url, sender in before.items():
            if url not in kept:
                sender.stop()
        for url, sender in kept.items():
            if url not in before:
                sender.start()
            sender.wake.set()

    def tally(self) -> dict[str, Notifications]:
        """Target (host:port, and the path where there is one) → what became of its notifications so far."""
        return {target_of(url): sender.tally for url, sender in self._senders.items()}

    def close(self, timeout_s: float) -> None:
        """Tell the threads to end and wait for them, altogether for at most `timeout_s`; for each an equal part.

        Nothing is resolved: a daemon that ends has seen nothing heal.
        """
        senders = list(self._senders.values())
        for sender in senders:
            sender.stop()
        for sender in senders:
            sender.join(timeout_s / len(senders))


class _Sender:
    """One thread for one Alertmanager. Only `wake`, `orders` and `tally` are touched from outside, each as a whole."""

    def __init__(
        self, clock: Callable[[], Tick], log: Log, newest: Callable[[], _Publication | None], orders: _Orders
    ) -> None:
        self.wake = threading.Event()
        self.orders = orders
        self.tally = Notifications()
        self._clock = clock
        self._log = log
        self._newest = newest
        self._taken: _Publication | None = None
        self._outbox = Outbox(orders.resend_s)
        self._stopped = False
        self._failing: Failure | None = None
        self._failing_since_s = 0.0
        self._thread = threading.Thread(target=self._work, name=f"push {orders.client.target}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self.wake.set()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _work(self) -> None:
        while not self._stopped:
            idle_s: float | None = FIRST_RETRY_S
            try:
                idle_s = self._turn()
            except Exception as error:  # noqa: BLE001  # a fault of ours costs one turn, not all alerts to come
                self._log("alertmanager_push_failed", target=self.orders.client.target, error=repr(error))
            self.wake.wait(idle_s)
            self.wake.clear()

    def _turn(self) -> float | None:
        """Send one batch, where one is due; seconds until the next turn, None: at the next publication."""
        orders, outbox, newest = self.orders, self._outbox, self._newest()
        outbox.resend_s = orders.resend_s
        if newest is not None and newest is not self._taken:
            self._taken = newest
            alerts = [
                alert_of(finding, orders.node, orders.runbook_base, orders.language) for finding in newest.findings
            ]
            outbox.take(alerts, newest.at)
            self._tell_drops(orders)
        batch = outbox.due(self._clock())
        if batch is not None:
            self._send(orders, batch)
        return outbox.idle_s(self._clock())

    def _send(self, orders: _Orders, batch: Batch) -> None:
        try:
            failure = orders.client.post(document(batch.postings))
        except Exception as error:  # noqa: BLE001  # as a failure it is counted, and has its rest before the next
            failure = Failure(FailureKind.EXIT, f"{orders.client.target}: a fault of npu-watchd: {error!r}")
        now = self._clock()
        if failure is None:
            self._outbox.sent(batch)
            self.tally = replace(self.tally, sent=self.tally.sent + 1, last_success_wall_s=now.wall_s)
        else:
            self._outbox.failed(batch, now)
            self.tally = replace(self.tally, sent=self.tally.sent + 1, failures=self.tally.failures + 1)
        self._tell(orders, failure, now)

    def _tell(self, orders: _Orders, failure: Failure | None, now: Tick) -> None:
        """One line when it begins to fail, when it fails otherwise, and when it is well again."""
        before, self._failing = self._failing, failure
        if failure is not None:
            if before is None:
                self._failing_since_s = now.mono_s
            if failure != before:
                target = orders.client.target
                self._log("alertmanager_failing", target=target, kind=failure.kind.value, detail=failure.detail)
        elif before is not None:
            outage_s = round(now.mono_s - self._failing_since_s, 1)
            self._log("alertmanager_reached_again", target=orders.client.target, outage_seconds=outage_s)

    def _tell_drops(self, orders: _Orders) -> None:
        dropped = self._outbox.dropped
        if dropped != self.tally.dropped:
            self._log("alerts_dropped", target=orders.client.target, alerts=dropped - self.tally.dropped)
            self.tally = replace(self.tally, dropped=dropped)
