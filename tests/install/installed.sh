#!/bin/bash
# installed.sh BUILD VERSION shared|both pkg-config|cmake: installs into a folder of its own, and builds and runs a project
# outside that finds the library there through the tool.
set -euo pipefail
build=$1 version=$2 kinds=$3 tool=$4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
meson install -C "$build" --no-rebuild --quiet --destdir "$place/installed" --tags devel,runtime
config=$(find "$place" -name reel.pc)
export PKG_CONFIG_PATH=${config%/*} PKG_CONFIG_SYSROOT_DIR=$place/installed
modules=$(find "$place" -name libreel_files.so)
export OUTSIDE_MODULES=${modules%/*}
export CMAKE_PREFIX_PATH=${config%/lib/*}
"$(dirname "$0")/use.sh" "$tool" "$place/project" "$version" "$kinds"
