#!/bin/bash
# The fingerprint by which a device module is refused changes with any shared header: fingerprint.sh SCRIPT ROOT
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/include" "$folder/lib"
cp -r "$2/include/reel" "$folder/include/reel"
cp -r "$2/lib/core" "$2/lib/kernels" "$folder/lib/"
"$1" "$folder" "$folder/before.h"
"$1" "$folder" "$folder/again.h"
cmp "$folder/before.h" "$folder/again.h"
# Two enumerators that change places leave all sizes as they are.
table=$folder/lib/kernels/kernel_table.h
sed -i 's/^\(enum class Reduction .*\) max, min,/\1 min, max,/' "$table"
! cmp -s "$table" "$2/lib/kernels/kernel_table.h" || { echo "the enumerators max and min were not found"; exit 1; }
"$1" "$folder" "$folder/after.h"
if cmp -s "$folder/before.h" "$folder/after.h"; then
  echo "the fingerprint is the same with max and min in another order"
  exit 1
fi
