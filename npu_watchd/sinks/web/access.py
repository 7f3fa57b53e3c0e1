"""Who may ask: basic authentication by bcrypt, and the rate limit."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import Enum

import bcrypt

_REMEMBERED = 128
"""Answers kept. A password is checked by bcrypt once, then recognised by a hash with a key that never leaves us."""

_SLOTS = 2
"""bcrypt runs at once: each holds a core for some 70 ms, and the node's cores belong to the jobs."""

_PASSWORD_MAX = 72
"""bcrypt reads no further; `htpasswd` and Go cut there as well."""

_WAITERS = 4
"""Requests that may wait for a check of their own credentials which is already under way."""

_PATIENCE_S = 5.0


class Admission(Enum):
    """What to do with a request."""

    WELCOME = "welcome"
    REFUSED = "refused"
    """No credentials, or wrong ones: 401."""
    LATER = "later"
    """Too many unknown passwords are being checked: 503, without having looked at this one."""


class BasicAuth:
    """Checks an Authorization header against bcrypt hashes without letting a guesser hold the workers.

    A pair seen before is answered from memory. New pairs go through bcrypt, two at a time in all and one for each
    remote address, so that whoever floods us with guesses keeps neither another client nor a known one waiting.
    An unknown user costs the same bcrypt run as a known one.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._answers: OrderedDict[bytes, bool] = OrderedDict()
        self._checking: dict[bytes, _Check] = {}
        self._waiters = 0

    def admit(self, users: Mapping[str, str], header: str | None, remote: str) -> Admission:
        """The verdict on this request; `users` maps names to bcrypt hashes and none means that all may enter."""
        if not users:
            return Admission.WELCOME
        credentials = _credentials(header)
        if credentials is None:
            return Admission.REFUSED
        user, password = credentials
        known = user in users
        hashed = users[user] if known else next(iter(users.values()))
        identity = self._identity(user, hashed, password, known)
        good = self._remembered(identity)
        if good is None:
            good = self._answer(identity, remote, lambda: _matches(password, hashed) and known)
        if good is None:
            return Admission.LATER
        return Admission.WELCOME if good else Admission.REFUSED

    def _answer(self, identity: bytes, remote: str, matches: Callable[[], bool]) -> bool | None:
        """True or False from bcrypt, run here or in the thread that is at it; None where there is no room to ask."""
        with self._lock:
            running = self._checking.get(identity)
            if running is None:
                if len(self._checking) >= _SLOTS or any(check.remote == remote for check in self._checking.values()):
                    return None
                self._checking[identity] = _Check(remote)
            elif self._waiters >= _WAITERS:
                return None
            else:
                self._waiters += 1
        if running is None:
            return self._check(identity, matches)
        running.done.wait(_PATIENCE_S)
        with self._lock:
            self._waiters -= 1
        return self._remembered(identity)

    def _check(self, identity: bytes, matches: Callable[[], bool]) -> bool:
        try:
            good = matches()
            self._remember(identity, good)
            return good
        finally:
            with self._lock:
                self._checking.pop(identity).done.set()

    def _identity(self, user: str, hashed: str, password: bytes, known: bool) -> bytes:
        digest = hashlib.blake2b(key=self._key)
        for part in (user.encode(), hashed.encode(), password, b"known" if known else b""):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()

    def _remembered(self, identity: bytes) -> bool | None:
        with self._lock:
            answer = self._answers.get(identity)
            if answer is not None:
                self._answers.move_to_end(identity)
            return answer

    def _remember(self, identity: bytes, good: bool) -> None:
        with self._lock:
            self._answers[identity] = good
            if len(self._answers) > _REMEMBERED:
                # A guesser fills the memory with refusals; those go first, so that no good answer is pushed out.
                oldest_refusal = next((key for key, answer in self._answers.items() if not answer), None)
                self._answers.pop(next(iter(self._answers)) if oldest_refusal is None else oldest_refusal)


class _Check:
    """A bcrypt run under way."""

    def __init__(self, remote: str) -> None:
        self.remote = remote
        self.done = threading.Event()


def _credentials(header: str | None) -> tuple[str, bytes] | None:
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None


def _matches(password: bytes, hashed: str) -> bool:
    try:
        return bcrypt.checkpw(password[:_PASSWORD_MAX], hashed.encode())
    except ValueError:
        return False


class RateLimit:
    """A token bucket: one request each `interval_s`, `burst` at once. Time comes from the clock that it is given."""

    def __init__(self, interval_s: float, burst: int, monotonic: Callable[[], float]) -> None:
        self._interval_s = interval_s
        self._burst = burst
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._tokens = float(burst)
        self._filled_at = monotonic()

    def allow(self) -> bool:
        """True where a token was left; it is then spent."""
        with self._lock:
            now = self._monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) / self._interval_s)
            self._filled_at = now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True
