#!/bin/bash
# installed.sh BUILD SOURCE VERSION shared|both pkg-config|cmake: installs into a folder of its own, and builds and runs the project
# SOURCE, a copy of samples/outside, which finds the library there through the tool.
set -euo pipefail
build=$1 source=$2 version=$3 kinds=$4 tool=$5
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
meson install -C "$build" --no-rebuild --quiet --destdir "$place/installed" --tags devel,runtime
config=$(find "$place" -name reel.pc)
export PKG_CONFIG_PATH=${config%/*} PKG_CONFIG_SYSROOT_DIR=$place/installed
modules=$(find "$place" -name libreel_files.so)
export OUTSIDE_MODULES=${modules%/*}
export CMAKE_PREFIX_PATH=${config%/lib/*}
"$(dirname "$0")/use.sh" "$tool" "$source" "$place/project" "$version" "$kinds"
