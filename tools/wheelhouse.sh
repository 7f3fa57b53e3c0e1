#!/usr/bin/env bash
# One tar for nodes without network: every wheel that they need, this package's own included, and install.sh.
# Usage: tools/wheelhouse.sh PYTHON MACHINES PYTHON_VERSIONS [DIST]     e.g. .venv/bin/python "x86_64 aarch64" "3.11 3.12"
# The tar holds what DIST/npu-watchd-VERSION holds. Packages come from where pip is configured to look.
set -euo pipefail

python=$1
machines=$2
versions=$3
dist=${4:-dist}
pip=("$python" -m pip --disable-pip-version-check --no-input)

release=$("$python" -c 'import npu_watchd; print(npu_watchd.__version__)')
folder=$dist/npu-watchd-$release
rm -rf "$folder"
mkdir -p "$folder/wheels" "$folder/share"

for machine in $machines; do
    for version in $versions; do
        echo "== wheels for Python $version on $machine" >&2
        "${pip[@]}" download --quiet --no-deps --require-hashes --only-binary=:all: \
            --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
            --python-version "$version" --requirement requirements.txt --dest "$folder/wheels"
        echo "$machine $version" >>"$folder/built-for"
    done
done
"${pip[@]}" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$folder/wheels" .

# Our own wheel is held to its hash as the others are.
own=("$folder"/wheels/npu_watchd-*.whl)
cp requirements.txt "$folder/requirements.txt"
printf 'npu-watchd==%s \\\n    --hash=sha256:%s\n' "$release" "$(sha256sum "${own[0]}" | cut -d' ' -f1)" \
    >"$folder/requirements-own.txt"
install -m 755 tools/install.sh "$folder/install.sh"
cp -r deploy/systemd "$folder/systemd"
cp -r README.md CHANGELOG.md deploy docs "$folder/share"
tar -C "$dist" --owner=0 --group=0 -czf "$folder.tar.gz" "$(basename "$folder")"
echo "$folder.tar.gz"
