#!/usr/bin/env bash
# Gather every wheel that a node without network needs, this package's own included.
# Usage: tools/wheelhouse.sh PYTHON MACHINE PYTHON_VERSION    (MACHINE: aarch64 or x86_64)
set -euo pipefail

python=$1
machine=$2
version=$3
folder=dist/wheelhouse-$machine-py$version

rm -rf "$folder"
mkdir -p "$folder"
"$python" -m pip --disable-pip-version-check download --quiet --no-deps --require-hashes --only-binary=:all: \
    --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" \
    --python-version "$version" --requirement requirements.txt --dest "$folder"
"$python" -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir "$folder" .
cp requirements.txt "$folder"
tar -C dist -czf "$folder.tar.gz" "$(basename "$folder")"
echo "$folder.tar.gz"
