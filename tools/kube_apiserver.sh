#!/usr/bin/env bash
# Build a real kube-apiserver from Debian's own source package, once: the opt-in tests of `make test-k8s` talk to it.
# Usage: tools/kube_apiserver.sh FOLDER    (leaves FOLDER/kube-apiserver, 110 MB; 7 minutes on two cores, 2 GB meanwhile)
#
# Sources come from where this machine's apt gets its packages; apt's own lists stay as they are.
set -euo pipefail

folder=$(mkdir -p "$1" && cd "$1" && pwd)
suite=${SUITE:-bookworm}
here=$(cd "$(dirname "$0")" && pwd)

"$here/debian_packages.sh" etcd-server
if [ -x "$folder/kube-apiserver" ]; then
    exit 0
fi
"$here/debian_packages.sh" golang-go make rsync jq

scratch=$(mktemp -d "$folder/build.XXXXXX")
trap 'chmod -R u+w "$scratch" && rm -rf "$scratch"' EXIT

echo "== fetching Debian's source package of kubernetes"
mkdir -p "$scratch/lists/partial" "$scratch/none"
# The machine's own entries for Debian's suite, asked for sources instead of packages; both of apt's two formats.
python3 - "$suite" >"$scratch/sources.list" <<'PYTHON'
import pathlib
import re
import sys

suite = sys.argv[1]
etc = pathlib.Path("/etc/apt")
for file in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]:
    for line in file.read_text().splitlines() if file.exists() else ():
        match = re.match(rf"deb(-src)? +(\[.*?\] +)?(\S+) +({suite}\S*) +(.+)", line)
        if match:
            print(f"deb-src {match[2] or ''}{match[3]} {match[4]} {match[5]}")
for file in sorted((etc / "sources.list.d").glob("*.sources")):
    for stanza in re.split(r"\n\s*\n", file.read_text()):
        field = dict(re.findall(r"^([\w-]+): *(.*)$", stanza, re.MULTILINE))
        signed = field.get("Signed-By", "")
        option = f"[signed-by={signed}] " if signed.startswith("/") else ""
        for address in field.get("URIs", "").split():
            for name in field.get("Suites", "").split():
                if re.match(rf"{suite}\b", name):
                    print(f"deb-src {option}{address} {name} {field.get('Components', 'main')}")
PYTHON
if [ ! -s "$scratch/sources.list" ]; then
    echo "apt's sources name no $suite on this machine: add its address, or set SUITE to a release with kubernetes 1.20" >&2
    exit 1
fi
apt=(apt-get -o "Dir::Etc::sourcelist=$scratch/sources.list" -o "Dir::Etc::sourceparts=$scratch/none"
    -o "Dir::State::lists=$scratch/lists" -o APT::Get::List-Cleanup=0 -o APT::Sandbox::User=root)
"${apt[@]}" --quiet --quiet update
(cd "$scratch" && "${apt[@]}" --quiet --quiet source --download-only kubernetes)
mkdir "$scratch/source"
tar --extract --gzip --strip-components=1 --directory "$scratch/source" --file "$scratch"/kubernetes_*.orig.tar.gz

echo '== building kube-apiserver'
mkdir -p "$scratch/source/.go/src/k8s.io" "$scratch/home"
ln -sfn ../../.. "$scratch/source/.go/src/k8s.io/kubernetes"
# Everything it needs is vendored: the build asks nobody for a module.
(cd "$scratch/source" && nice -n 19 env -i HOME="$scratch/home" GOPATH="$scratch/source/.go" CGO_ENABLED=0 GOPROXY=off \
    GOFLAGS=-modcacherw PATH=/usr/local/bin:/usr/bin:/bin make WHAT=cmd/kube-apiserver)
mv "$(find "$scratch/source/_output" -name kube-apiserver -type f -perm -u+x | head -1)" "$folder/kube-apiserver"
echo "$folder/kube-apiserver"
