#!/bin/bash
# check_symbols.sh C_LIBRARY LIST LIBRARY: fails unless the C library exports the symbols in LIST and no others, and LIBRARY,
# which programs in C++ are linked with, has none of them and does not load the C library.
set -euo pipefail
export LC_ALL=C
c_library=$1 list=$2 library=$3
symbols_of() { nm -D --defined-only --with-symbol-versions "$1" | sed 's/^[0-9a-f]* *//' | sort; }

sort -c "$list" || { echo "$list is not sorted"; exit 1; }
if ! difference=$(diff "$list" <(symbols_of "$c_library")); then
  echo "$c_library exports other symbols than $list (<: only in the list, >: only in the library):"
  echo "$difference"
  exit 1
fi
names=$(sed -n 's/^T \(.*\)@@.*/\1/p' "$list")
shared=$(comm -12 <(echo "$names") <(nm -D --defined-only "$library" | sed 's/.* //; s/@.*//' | sort))
[[ -z $shared ]] || { echo "$library has symbols of the C interface: $shared"; exit 1; }
if readelf -d "$library" | grep -E 'NEEDED.*(reel_c|protobuf|onnx|mpi|nccl|python)'; then
  echo "$library loads what only other programs need"
  exit 1
fi
echo "$(wc -l <<<"$names") functions"
