#!/usr/bin/env bash
# Make sure that Debian packages are there: install the missing ones when root, else name them and fail.
# Usage: tools/debian_packages.sh PACKAGE...
set -euo pipefail

if ! command -v dpkg-query >/dev/null; then
    echo "This is neither Debian nor Ubuntu: cannot tell whether these are installed: $*" >&2
    exit 1
fi

missing=()
for package in "$@"; do
    if [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
        missing+=("$package")
    fi
done

if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "The tests need Debian packages that are not installed: ${missing[*]}" >&2
    echo "As root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
fi
echo "== installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install --yes --no-install-recommends "${missing[@]}"
