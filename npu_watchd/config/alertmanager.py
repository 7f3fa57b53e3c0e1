"""`[alertmanager]`: whom to tell of what is wrong, and how to reach them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from npu_watchd.config.section import Section, about
from npu_watchd.config.values import AlertmanagerUrl, Name, PlainUrl, Seconds


class AlertmanagerSection(Section, frozen=True):
    urls: Annotated[
        tuple[AlertmanagerUrl, ...],
        about(
            "Every Alertmanager of the set: each alert goes to all of them.",
            unset="none, so nothing is sent",
            example=(AlertmanagerUrl("http://am1:9093"), AlertmanagerUrl("http://am2:9093")),
        ),
    ] = ()
    resend_s: Annotated[Seconds, about("How often a firing alert is sent again.")] = msgspec.field(
        default=Seconds(60), name="resend"
    )
    timeout_s: Annotated[
        Seconds, about("For connecting, and for each wait for an answer; no cycle waits for either.")
    ] = msgspec.field(default=Seconds(5), name="timeout")
    basic_auth_user: Annotated[
        Name | None, about("User name, where they ask for one.", unset="none is sent", example=Name("npu-watchd"))
    ] = None
    basic_auth_password_file: Annotated[
        Path | None,
        about(
            "File with that user's password.",
            unset="none is sent",
            example=Path("/etc/npu-watchd/alertmanager.password"),
        ),
    ] = None
    bearer_token_file: Annotated[
        Path | None,
        about(
            "File with a bearer token, instead of user and password.",
            unset="none is sent",
            example=Path("/etc/npu-watchd/alertmanager.token"),
        ),
    ] = None
    ca_file: Annotated[
        Path | None,
        about(
            "Authorities (PEM) that may have signed their certificates.",
            unset="the system's",
            example=Path("/etc/npu-watchd/alertmanager-ca.crt"),
        ),
    ] = None
    cert_file: Annotated[
        Path | None,
        about("Our own certificate (PEM).", unset="none is shown", example=Path("/etc/npu-watchd/client.crt")),
    ] = None
    key_file: Annotated[
        Path | None,
        about("Its key (PEM, without a passphrase).", unset="none", example=Path("/etc/npu-watchd/client.key")),
    ] = None
    insecure_skip_verify: Annotated[bool, about("Take any certificate: alerts may then go to anybody.")] = False
    server_name: Annotated[
        Name | None,
        about(
            "Name that their certificates bear.", unset="the host of each address", example=Name("alertmanager.example")
        ),
    ] = None
    proxy: Annotated[
        PlainUrl | None,
        about(
            "HTTP proxy on the way to them.",
            unset="none, whatever the environment says",
            example=PlainUrl("http://proxy:3128"),
        ),
    ] = None
    runbook_url: Annotated[
        PlainUrl | None,
        about(
            "Where docs/runbooks is published: the alerts then link to their page below it.",
            unset="no link",
            example=PlainUrl("https://wiki/npu-watchd/runbooks"),
        ),
    ] = None
