#!/bin/bash
# saved.sh FILE PROGRAM ARGUMENT…: passes if a model that PROGRAM has trained and saved judges FILE as it did before it was saved.
set -euo pipefail
file=$1
program=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
row() { grep "^$1 " | sed "s/^$1 *//; s/  */ /g"; }
before=$("$program" "$@" --test "$file" --save "$folder/model.safetensors" | row test)
after=$("$program" --load "$folder/model.safetensors" --epochs 0 --test "$file" | row test)
echo "trained: $before"
echo "loaded:  $after"
[[ -n $before && $before == "$after" ]]
