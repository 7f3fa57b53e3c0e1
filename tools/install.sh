#!/bin/sh
# Install or upgrade npu-watchd on a node, from the wheels beside this script; no network is used. Config and state stay.
# Usage: ./install.sh          as root: program in /opt/npu-watchd, systemd unit, /usr/local/bin/npu-watchd
#   PREFIX=/data/npu-watchd    another place for the program
#   PYTHON=python3.12          another interpreter than the first one that is new enough
#   ROOT=/mnt/image            into the tree of another system: nothing of this one is started or changed
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
PREFIX=${PREFIX:-/opt/npu-watchd}
ROOT=${ROOT:-}

refuse() {
    echo "install.sh: $1" >&2
    exit 1
}

case $PREFIX in
/*) ;;
*) refuse "PREFIX must be an absolute path, and is $PREFIX" ;;
esac
[ -f "$here/built-for" ] || refuse "$here holds no wheels: run the install.sh of an unpacked tar of \`make wheelhouse\`"

# Which interpreter: one that the wheels are for.

# "MACHINE VERSION", of the interpreter itself: a system may run programs of several kinds.
kind_of() { "$1" -c 'import platform, sys; print(platform.machine(), "%d.%d" % sys.version_info[:2])' 2>/dev/null; }

python='' seen=''
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    kind=$(kind_of "$candidate") || continue
    if grep -qxF "$kind" "$here/built-for"; then
        python=$candidate
        break
    fi
    seen="$seen; $candidate is for $kind"
done
if [ -z "$python" ]; then
    echo "install.sh: no interpreter that these wheels are for. Looked for: ${PYTHON:-python3, python3.13, python3.12, python3.11}$seen." >&2
    echo "The wheels are for (machine, Python): $(paste -sd, "$here/built-for" | sed 's/,/, /g')." >&2
    echo "Install such a Python, or name it (PYTHON=/path/to/python3.11 ./install.sh), or build wheels for this one:" >&2
    echo "make wheelhouse MACHINES=... PYTHON_VERSIONS=..." >&2
    exit 1
fi
"$python" -c 'import os, sys; sys.exit(tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))) < (2, 28))' \
    2>/dev/null || refuse "the wheels need glibc 2.28 or newer (openEuler 20.03, Debian 10, Ubuntu 18.10, or later)"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    refuse "$python cannot make virtual environments; install its venv package (Debian, Ubuntu: python3-venv)"

# The program.

home=$ROOT$PREFIX
if [ -e "$home" ] && [ ! -f "$home/pyvenv.cfg" ] && [ -n "$(ls -A "$home")" ]; then
    refuse "$home holds something else; empty it, or choose another PREFIX"
fi
# Anew too where an earlier run was cut off before it had pip.
if [ "$(kind_of "$home/bin/python" || true)" != "$kind" ] || ! "$home/bin/python" -c 'import pip' 2>/dev/null; then
    echo "== making $home with $("$python" --version)"
    "$python" -m venv --clear "$home"
fi
pip() {
    # --isolated: neither PIP_... of the environment nor a pip.conf of this machine may send it anywhere.
    "$home/bin/python" -m pip --isolated --disable-pip-version-check --no-input install --quiet --no-cache-dir \
        --no-index --find-links "$here/wheels" --only-binary=:all: --require-hashes "$@"
}
echo "== installing into $home"
pip --requirement "$here/requirements.txt"
# Anew even where the version is the same, so that what runs is what lies here.
pip --no-deps --force-reinstall --requirement "$here/requirements-own.txt"
rm -rf "$home/share/npu-watchd"
mkdir -p "$home/share"
cp -r "$here/share" "$home/share/npu-watchd"
version=$("$home/bin/npu-watchd" --version)
[ -z "$ROOT" ] || sed -i "1s|^#!$ROOT|#!|" "$home"/bin/npu-watchd

# What systemd and people find it by. In /usr/local/lib: /etc/systemd/system is for what the node's owner changes.

if [ "$(id -u)" -ne 0 ] && [ -z "$ROOT" ]; then
    echo "$version is in $PREFIX. The systemd unit and /usr/local/bin/npu-watchd need root: run install.sh again as root."
    exit 0
fi
lib=$ROOT/usr/local/lib
mkdir -p "$lib/systemd/system" "$lib/sysusers.d" "$lib/tmpfiles.d" "$ROOT/usr/local/bin"
for kind in service sysusers.conf tmpfiles.conf; do
    case $kind in
    service) target=$lib/systemd/system/npu-watchd.service ;;
    *) target=$lib/${kind%.conf}.d/npu-watchd.conf ;;
    esac
    sed "s|/opt/npu-watchd|$PREFIX|g" "$here/systemd/npu-watchd.$kind" >"$target.new"
    chmod 644 "$target.new"
    mv -f "$target.new" "$target"
done
link=$ROOT/usr/local/bin/npu-watchd
if [ -e "$link" ] && [ ! -L "$link" ]; then
    echo "$link is not ours and stays as it is; the program is $PREFIX/bin/npu-watchd" >&2
else
    ln -sfn "$PREFIX/bin/npu-watchd" "$link"
fi

# What comes next.

own=$ROOT/etc/systemd/system/npu-watchd.service
[ ! -e "$own" ] || echo "$own hides the unit that was just installed; remove it if nobody has changed it" >&2
echo "$version is in $PREFIX."
if [ -n "$ROOT" ]; then
    echo "In $ROOT: systemd-sysusers && systemd-tmpfiles --create npu-watchd.conf && systemctl enable npu-watchd"
    exit 0
fi
if [ ! -d /run/systemd/system ]; then
    echo "systemd does not run here: start it yourself with $PREFIX/bin/npu-watchd run"
    exit 0
fi
systemd-sysusers "$lib/sysusers.d/npu-watchd.conf"
systemd-tmpfiles --create npu-watchd.conf
systemctl daemon-reload
if systemctl is-active --quiet npu-watchd; then
    echo "The old version still runs. Next:  systemctl restart npu-watchd"
else
    [ -e /etc/npu-watchd/config.toml ] || echo "A config is optional:  npu-watchd config init /etc/npu-watchd/config.toml"
    echo "Next:  systemctl enable --now npu-watchd && npu-watchd status"
fi
