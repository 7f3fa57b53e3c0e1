"""Kubernetes: cordon, taint, annotation and condition of this node, by plain HTTPS, as a pod or a kubeconfig may."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping

from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.sinks.actuators.actuator import Hold, Intention
from npu_watchd.sinks.actuators.kube_access import Access, Settings, access_from
from npu_watchd.sinks.actuators.kube_api import CONFLICT, Exchange, RequestError, exchange
from npu_watchd.sinks.actuators.kube_node import KubeNode, Patch, condition_for, freeing, hold_of, holding

ATTEMPTS = 5
"""How often a change is made anew on what the node has become meanwhile, before we give up until the next call."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


class Kubernetes:
    """One Node. Each call has one connection of its own, which is cut at the deadline. For one thread at a time."""

    name = "kubernetes"

    def __init__(
        self,
        access: Access,
        node: str,
        wall: Callable[[], float],
        *,
        effect: str = "NoSchedule",
        deadline_s: float = 10.0,
    ) -> None:
        """wall: Unix seconds, for the condition's times; effect: NoSchedule, or NoExecute, which also ends its pods."""
        self._access = access
        self._node = node
        self._wall = wall
        self._effect = effect
        self._deadline_s = deadline_s

    def look(self) -> Hold | Failure:
        """Who holds the node. A person's change of our mark is in the text: NOBODY where they gave the node back."""
        try:
            with self._exchange() as opened:
                return hold_of(opened.node())
        except RequestError as error:
            return error.failure

    def hold(self, intention: Intention) -> Failure | None:
        """Cordon, taint, annotate and, after that, say so in a condition.

        On a node that somebody else cordoned only the taint is ours. Nothing is done where our key is taken by
        somebody else, nor for a mark that is there already, even if a person has undone part of it.
        """
        try:
            with self._exchange() as opened:
                node = self._changed(opened, lambda node: holding(node, intention, self._effect))
                note = node.note
                if note is not None and note.mark == intention.mark and node.is_whole(note):
                    self._tell(opened, condition_for(node, note, intention.mark, self._wall()))
        except RequestError as error:
            return error.failure
        return None

    def free(self, mark: str) -> Failure | None:
        """Take this mark's annotation and taint away, and our own cordon if everything is as we left it.

        The condition goes first: dying after it leaves the annotation, and with that the way back here.
        """
        untold: Failure | None = None
        try:
            with self._exchange() as opened:
                try:
                    self._tell(opened, condition_for(opened.node(), None, mark, self._wall()))
                except RequestError as error:
                    if error.status is None:
                        raise
                    # Being told is not worth a node that stays out of use.
                    untold = error.failure
                self._changed(opened, lambda node: freeing(node, mark))
        except RequestError as error:
            return error.failure
        return untold

    def _exchange(self) -> contextlib.AbstractContextManager[Exchange]:
        if not _NAME.fullmatch(self._node):
            cure = "set [kubernetes] node_name to a name that `kubectl get nodes` has"
            raise RequestError(Failure(FailureKind.MISSING, f"{self._node!r} cannot be a node's name; {cure}"))
        return exchange(self._access, self._node, self._deadline_s)

    def _changed(self, opened: Exchange, change: Callable[[KubeNode], Patch | None]) -> KubeNode:
        """The node after the change, thought over anew each time that it had changed under our hands."""
        for attempt in range(1, ATTEMPTS + 1):
            node = opened.node()
            patch = change(node)
            if patch is None:
                return node
            try:
                return opened.patch(patch)
            except RequestError as error:
                if error.status != CONFLICT or attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _tell(self, opened: Exchange, patch: Patch | None) -> None:
        if patch is not None:
            opened.patch_status(patch)


def kubernetes(settings: Settings, environment: Mapping[str, str], host: str, wall: Callable[[], float]) -> Kubernetes:
    """As `[kubernetes]` and the environment say. host: this machine's name, where nothing else names the node."""
    node = settings.node_name or environment.get("NODE_NAME") or host.lower()
    access = access_from(environment, settings)
    return Kubernetes(access, node, wall, effect=settings.taint_effect, deadline_s=settings.timeout_s)
