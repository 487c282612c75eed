#!/bin/bash
# Installs into a folder of its own and builds a program outside the project that finds the library through pkg-config.
set -euo pipefail
build=$1 source=$2 compiler=$3
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
meson install -C "$build" --no-rebuild --quiet --destdir "$place" --tags devel,runtime
config=$(find "$place" -name reel.pc)
export PKG_CONFIG_PATH=${config%/*} PKG_CONFIG_SYSROOT_DIR=$place
read -ra flags <<<"$(pkg-config --cflags --libs reel)"
# shellcheck disable=SC2086
$compiler "$source" "${flags[@]}" ${EXTRA_FLAGS-} -o "$place/outside"
library=$(find "$place" -name 'libreel.so')
printed=$(LD_LIBRARY_PATH=${library%/*} "$place/outside")
[[ $printed == "[2. 4. 6.]" ]] || { echo "printed '$printed' instead of [2. 4. 6.]"; exit 1; }
