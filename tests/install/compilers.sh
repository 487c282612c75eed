#!/bin/bash
# compilers.sh PROGRAM.cpp INCLUDE LIBRARY: PROGRAM.cpp, compiled by each compiler that is here, links with LIBRARY, which one
# of them has built, and prints that all is right. Clang 18 and later have a constraint in the name of a template, others have
# not. The headers leave nothing to be destroyed at the program's end: an interpreter may have dropped the code by then.
# Exits with status 77, after that, where there is no such clang.
set -euo pipefail
program=$1 include=$2 library=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

builds() {
  "$1" -std=c++20 -O0 -c "-I$include" "$program" -o "$folder/$1.o"
  if nm -u "$folder/$1.o" | grep -E '_ZN?K?4reel.*Tk|__cxa_atexit'; then
    echo "$1: these names have a constraint, or are of objects that are destroyed at the end"
    return 1
  fi
  "$1" "$folder/$1.o" "$library" "-Wl,-rpath,${library%/*}" -o "$folder/$1"
  [[ $("$folder/$1") == "all are right" ]] || { echo "$1: the program is wrong"; return 1; }
  echo "$1: the program links and runs"
}

declare -A compilers
mangles=no status=0 jobs=()
for compiler in clang++{,-1{4..9},-2{0..9}} g++{,-1{1..9}}; do
  path=$(command -v "$compiler") || continue
  compilers[$(readlink -f "$path")]=$compiler
  [[ $compiler != clang++* ]] || (($("$compiler" -dumpversion | cut -d. -f1) < 18)) || mangles=yes
done
for compiler in "${compilers[@]}"; do
  builds "$compiler" &
  jobs+=($!)
done
for job in "${jobs[@]}"; do wait "$job" || status=1; done
((status == 0)) || exit 1
[[ $mangles == yes ]] || { echo "no clang 18 or later is here, so names with constraints were not looked for"; exit 77; }
