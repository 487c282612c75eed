#!/bin/bash
# use.sh pkg-config|cmake|meson FOLDER VERSION shared|both: builds the project in outside/, in FOLDER, with the reel that the
# tool finds, and runs its program: linked with libreel.so and, with `both`, with libreel.a.
# CXX and CXXFLAGS in the environment are the compiler and more of its arguments.
set -euo pipefail
tool=$1 folder=$2 version=$3 kinds=$4
source=$(cd "$(dirname "$0")" && pwd)/outside
mkdir -p "$folder"

# runs shared|static PROGRAM: whether it is linked like that, and prints what it should.
runs() {
  local found=static
  if readelf -d "$2" | grep -q 'NEEDED.*libreel\.so'; then found=shared; fi
  [[ $found == "$1" ]] || { echo "$tool: $2 is linked with the $found library, not the $1 one"; exit 1; }
  # A statically linked program finds the modules where they were installed, which a test says that installs elsewhere.
  if [[ $1 == static && -n ${OUTSIDE_MODULES-} ]]; then
    REEL_MODULES=$OUTSIDE_MODULES "$2" >"$folder/printed"
  else
    "$2" >"$folder/printed"
  fi
  {
    read -r versions
    read -r gradient
    read -r absence
    read -r array
  } <"$folder/printed"
  [[ $versions == "$version $version" ]] || { echo "$tool: the versions are '$versions', not $version twice"; exit 1; }
  [[ $gradient == "[2. 4. 6.]" ]] || { echo "$tool: the gradient is '$gradient' instead of [2. 4. 6.]"; exit 1; }
  [[ $array == "$gradient" ]] || { echo "$tool: the array in the compressed file is '$array'"; exit 1; }
  if [[ $1 == static && $absence != *libreel.so*libreel.a* ]]; then
    echo "$tool: the statically linked program says '$absence'"
    exit 1
  fi
  echo "$tool: the program with the $1 library runs"
}

case $tool in
  pkg-config)
    read -ra compiler <<<"${CXX:-c++} ${CXXFLAGS-}"
    read -ra arguments <<<"$(pkg-config --cflags reel)"
    "${compiler[@]}" "${arguments[@]}" -c "$source/outside.cpp" -o "$folder/outside.o"
    read -ra arguments <<<"$(pkg-config --libs reel)"
    "${compiler[@]}" "$folder/outside.o" "${arguments[@]}" -o "$folder/outside"
    for argument in "${arguments[@]}"; do
      if [[ $argument == -L* ]]; then export LD_LIBRARY_PATH=${argument#-L}; fi
    done
    runs shared "$folder/outside"
    if [[ $kinds == both ]]; then
      read -ra arguments <<<"$(pkg-config --libs --static reel)"
      "${compiler[@]}" "$folder/outside.o" "${arguments[@]/#-lreel/-l:libreel.a}" -o "$folder/outside_static"
      runs static "$folder/outside_static"
    fi
    ;;
  cmake)
    mkdir -p "$folder/other" "$folder/build"
    cat >"$folder/other/CMakeLists.txt" <<'PROJECT'
cmake_minimum_required(VERSION 3.16)
project(other CXX)
foreach(version 0.0 99)
  find_package(reel ${version} QUIET)
  message(STATUS "${version}: ${reel_FOUND} ${reel_CONSIDERED_VERSIONS}")
endforeach()
PROJECT
    # A folder may be found under two names.
    cmake -S "$folder/other" -B "$folder/other" >"$folder/log" || { cat "$folder/log"; exit 1; }
    for other in 0.0 99; do
      grep -qe "^-- $other: 0 $version" "$folder/log" || { grep -e "^-- $other:" "$folder/log"; exit 1; }
    done
    cmake -S "$source" -B "$folder/build" >"$folder/log" || { cat "$folder/log"; exit 1; }
    cmake --build "$folder/build" >"$folder/log" || { cat "$folder/log"; exit 1; }
    runs shared "$folder/build/outside"
    if [[ $kinds == both ]]; then runs static "$folder/build/outside_static"; fi
    ;;
  meson)
    meson setup "$folder/build" "$source" >"$folder/log" || { cat "$folder/log"; exit 1; }
    meson compile -C "$folder/build" >"$folder/log" || { cat "$folder/log"; exit 1; }
    runs shared "$folder/build/outside"
    ;;
esac
