"""`installed` of the API: versions of driver, firmware, CANN and Python packages (docs/api.md)."""

from __future__ import annotations

from typing import Any

from npu_watchd.model.versions import Installed, VersionFile, VersionSpan


def installed_document(installed: Installed) -> dict[str, Any]:
    return {
        "driver": _file(installed.driver),
        "firmware": _file(installed.firmware),
        "cann": {folder: _file(file) for folder, file in sorted(installed.cann.items())},
        "packages": [{"folder": one.folder, "versions": dict(one.versions)} for one in installed.packages],
        "failures": {
            name: {"kind": failure.kind.value, "detail": failure.detail} for name, failure in installed.failures.items()
        },
    }


def _file(file: VersionFile | None) -> dict[str, Any] | None:
    if file is None:
        return None
    return {
        "version": file.version,
        "inner_version": file.inner_version,
        "package_version": file.package_version,
        "compatible_firmware": _spans(file.compatible_firmware),
        "compatible_driver": _spans(file.compatible_driver),
    }


def _spans(spans: tuple[VersionSpan, ...] | None) -> list[list[str]] | None:
    return None if spans is None else [[span.first, span.last] for span in spans]
