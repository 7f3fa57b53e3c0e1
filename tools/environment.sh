#!/usr/bin/env bash
# Make the virtual environment VENV and put into it what the REQUIREMENTS pin, and this package.
# Usage: [PYTHON=python3.12] tools/environment.sh VENV REQUIREMENTS...
set -euo pipefail

venv=$1
shift

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "npu-watchd needs Python 3.11 or newer; looked for: ${PYTHON:-python3, python3.13, python3.12, python3.11}." >&2
    echo "Install one (Debian 12, Ubuntu 24.04: apt-get install python3 python3-venv), or name it: PYTHON=/path/to/python3.11 make ..." >&2
    exit 1
}

if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        echo "$python cannot make virtual environments: its venv package is missing." >&2
        echo "As root: apt-get install python3-venv   (or python$version-venv)" >&2
        exit 1
    fi
    echo "== making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
elif ! new_enough "$venv/bin/python"; then
    echo "$venv was made with a Python older than 3.11: remove it (rm -r $venv) and try again." >&2
    exit 1
fi

pip=("$venv/bin/python" -m pip --disable-pip-version-check --no-input)
echo "== installing $(cat "$@" | grep -c '==') packages pinned in $*"
"${pip[@]}" install --require-hashes --only-binary=:all: "${@/#/--requirement=}"
echo "== installing npu-watchd itself"
"${pip[@]}" install --quiet --no-deps --no-build-isolation --editable .
