#!/bin/bash
# subproject.sh ROOT [OPTION…]: configures the project in samples/outside with reel as a subproject and fails if that would build
# anything but the library. The library is not compiled: tools/package --check does that, too.
set -euo pipefail
root=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/source/subprojects"
cp "$root"/samples/outside/{meson.build,model.cpp} "$folder/source/"
ln -sfn "$root" "$folder/source/subprojects/reel"
meson setup "$@" --force-fallback-for=reel "$folder/build" "$folder/source" >"$folder/log" || { cat "$folder/log"; exit 1; }
meson introspect --targets --tests "$folder/build" | python3 -c '
import json, sys
found = json.load(sys.stdin)
tests, targets = found["tests"], {target["name"]: target["defined_in"] for target in found["targets"]}
more = sorted(name for name, file in targets.items() if any(f"/{part}/" in file for part in ("tests", "samples", "tools")))
if more or tests:
    sys.exit(f"as a subproject, reel builds {more} and has {len(tests)} tests")
if not {"model", "reel"} <= set(targets):
    sys.exit(f"the targets are {sorted(targets)}, without model or reel")
'
