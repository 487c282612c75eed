#!/bin/bash
# older_header.sh ROOT LIBRARY VERSION: a program compiled with the headers of another release can tell that the library is of
# VERSION.
set -euo pipefail
root=$1 library=$2 version=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/reel"
sed "s/\.patch = [0-9]*, \.string = \"[^\"]*\"/.patch = 99, .string = \"0.0.99\"/" "$root/include/reel/version.h" \
  >"$folder/reel/version.h"
cat >"$folder/program.cpp" <<'PROGRAM'
#include <reel/version.h>

#include <cstdio>

int main() {
  std::printf("%s %s %d\n", reel::version.string, reel::library_version().string, reel::library_version() == reel::version);
}
PROGRAM
read -ra compiler <<<"${CXX:-c++} ${CXXFLAGS-}"
"${compiler[@]}" -std=c++20 "-I$folder" "$folder/program.cpp" "$library" "-Wl,-rpath,${library%/*}" -o "$folder/program"
printed=$("$folder/program")
[[ $printed == "0.0.99 $version 0" ]] || { echo "the program printed '$printed'"; exit 1; }
