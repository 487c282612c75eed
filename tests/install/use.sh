#!/bin/bash
# use.sh pkg-config|cmake|meson SOURCE FOLDER VERSION shared|both: builds the project SOURCE, a copy of samples/outside, in FOLDER with
# the reel that the tool finds, and runs its program: linked with libreel.so and, with `both`, with libreel.a, and so the program
# of looks.cpp in its place. With pkg-config and CMake also the server in C, and the program of several processes where reel has
# that part.
# CC, CXX, CFLAGS and CXXFLAGS in the environment are the compilers and more of their arguments.
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
tool=$1 source=$(cd "$2" && pwd) folder=$3 version=$4 kinds=$5
mkdir -p "$folder/build"
cd "$folder"

# links PROGRAM LIBRARY…: whether it is linked with these shared libraries of reel and no others.
links() {
  local found
  found=$(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(libreel[a-z_]*\)\.so.*/\1/p' | sort | xargs)
  [[ $found == "${*:2}" ]] || { echo "$tool: $1 is linked with '$found', not '${*:2}'"; exit 1; }
}

# looks shared|static PROGRAM: whether the program of looks.cpp is linked with libreel_debug like that, and runs.
looks() {
  if [[ $1 == static ]]; then links "$2"; else links "$2" libreel libreel_debug; fi
  [[ $(REEL_MODULES=${OUTSIDE_MODULES-} "$2") == "tanh is listed" ]] || { echo "$tool: $2 does not list what ran"; exit 1; }
  echo "$tool: the program that looks at its run works with the $1 library"
}

# runs shared|static PROGRAM: whether it is linked like that, and prints what it should.
runs() {
  if [[ $1 == static ]]; then links "$2"; else links "$2" libreel; fi
  # A statically linked program finds the modules where they were installed, which a test says that installs elsewhere.
  if [[ $1 == static && -n ${OUTSIDE_MODULES-} ]]; then
    REEL_MODULES=$OUTSIDE_MODULES "$2" >printed
  else
    "$2" >printed
  fi
  {
    read -r versions
    read -r absence
    read -r line
  } <printed
  [[ $versions == "reel $version, headers of $version" ]] || { echo "$tool: it is '$versions', not $version twice"; exit 1; }
  [[ $line == "y = 3.00 x -1.00" ]] || { echo "$tool: the line in the compressed file is '$line'"; exit 1; }
  if [[ $1 == static && $absence != *libreel.so*libreel.a* ]]; then
    echo "$tool: the statically linked program says '$absence'"
    exit 1
  fi
  echo "$tool: the program with the $1 library runs"
}

# serves PROGRAM PLUGIN WEIGHTS: whether the program in C needs only the C interface, and answers with the plugin's model.
serves() {
  if readelf -d "$1" | grep -E 'NEEDED.*(libreel\.so|libstdc)'; then
    echo "$tool: the program in C is linked with libraries of C++"
    exit 1
  fi
  printf '0 0\n0.95 0.95\n1 2 3\n' | "$@" >printed
  grep -Pzq '^(0\.[0-4]\S*|\S+e-\d+) (0\.\d+|1)\n(0\.\d+|1) (0\.[0-4]\S*|\S+e-\d+)\nerror: .*Linear: x \(1, 3\)' printed ||
    { echo "$tool: the program in C answered"; cat printed; exit 1; }
  echo "$tool: the program in C runs a model"
}

# predicts PROGRAM WEIGHTS: whether the program that is linked with libreel.a runs the model, and takes at most 10 ms of the
# processor from start to end, the least of some runs, as other programs run beside it.
predicts() {
  if readelf -d "$1" | grep 'NEEDED.*libreel'; then
    echo "$tool: $1 is linked with a shared library of reel"
    exit 1
  fi
  local TIMEFORMAT='%3U %3S' least=1000000 user system
  for _ in {1..20}; do
    read -r user system < <({ time "$@" 0 0 >printed; } 2>&1)
    user=$((10#${user/[.,]/} + 10#${system/[.,]/}))
    ((user >= least)) || least=$user
  done
  grep -qE '^within the circle with probability (0\.[5-9]|1)' printed || { echo "$tool: $1 printed"; cat printed; exit 1; }
  ((least <= 10)) || { echo "$tool: $1 takes $least ms from start to end"; exit 1; }
  echo "$tool: the static program of $(stat -c %s "$1") bytes takes $least ms from start to end"
}

# joins PROGRAM: whether the program of several processes trains as one and as two.
joins() {
  local ranks
  for ranks in 1 2; do
    # Open MPI frees not all of its memory at the end.
    ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 \
      OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 \
      mpirun --quiet --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$ranks" "$1" >printed
    [[ $(<printed) == "$ranks ranks: y = 3.00 x -1.00" ]] || { echo "$tool: $ranks processes printed"; cat printed; exit 1; }
  done
  echo "$tool: the program of several processes runs"
}

case $tool in
  pkg-config)
    cp "$source"/{Makefile,model.cpp,serve.c,classifier.cpp,predict.cpp,ranks.cpp} build
    make -C build >log
    for argument in $(pkg-config --libs reel); do
      if [[ $argument == -L* ]]; then export LD_LIBRARY_PATH=${argument#-L}; fi
    done
    cp "$tests/looks.cpp" build
    make -C build looks >log
    runs shared build/model
    looks shared build/looks
    if [[ $kinds == both ]]; then
      rm build/{model,looks}
      make -C build model looks LDLIBS="$(pkg-config --libs --static reel | sed -E 's/-l(reel\w*)/-l:lib\1.a/g')" >log
      runs static build/model
      looks static build/looks
    fi
    make -C build serve-model >log
    (cd build && ./classifier) >log
    serves build/serve build/classifier.so build/classifier.safetensors
    if [[ $kinds == both ]]; then
      make -C build predict >log
      predicts build/predict build/classifier.safetensors
    fi
    if pkg-config --exists reel_dist; then
      make -C build ranks >log
      joins build/ranks
    fi
    ;;
  cmake)
    mkdir -p other
    cat >other/CMakeLists.txt <<'PROJECT'
cmake_minimum_required(VERSION 3.16)
project(other CXX)
foreach(version 0.0 99)
  find_package(reel ${version} QUIET)
  message(STATUS "${version}: ${reel_FOUND} ${reel_CONSIDERED_VERSIONS}")
endforeach()
PROJECT
    # A folder may be found under two names.
    cmake -S other -B other >log || { cat log; exit 1; }
    for other in 0.0 99; do
      grep -qe "^-- $other: 0 $version" log || { grep -e "^-- $other:" log; exit 1; }
    done
    mkdir looks
    cp "$source/CMakeLists.txt" looks
    cp "$tests/looks.cpp" looks/model.cpp
    # Linked anew, not compiled.
    for target in reel::reel $([[ $kinds != both ]] || echo reel::static); do
      cmake "-Dreel_target=$target" -S "$source" -B build >log || { cat log; exit 1; }
      cmake --build build >log || { cat log; exit 1; }
      cmake "-Dreel_target=$target" -S looks -B looks/build >log || { cat log; exit 1; }
      cmake --build looks/build >log || { cat log; exit 1; }
      kind=shared
      if [[ $target == reel::static ]]; then kind=static; fi
      runs "$kind" build/model
      looks "$kind" looks/build/model
    done
    # The model's plugin is built with pkg-config, which takes most of the time.
    cmake -Dserve=ON -S "$source" -B build >log || { cat log; exit 1; }
    cmake --build build --target serve >log || { cat log; exit 1; }
    if build/serve 2>printed || ! grep -q '^Usage: serve' printed; then
      echo "$tool: the program in C without arguments printed"
      cat printed
      exit 1
    fi
    echo "$tool: the program in C is linked"
    if cmake -Dranks=ON -S "$source" -B build >log 2>&1 && ! grep -q 'reel::dist.*not found' log; then
      cmake --build build --target ranks >log || { cat log; exit 1; }
      joins build/ranks
    fi
    ;;
  meson)
    meson setup build "$source" >log || { cat log; exit 1; }
    meson compile -C build >log || { cat log; exit 1; }
    runs shared build/model
    mkdir looks
    cp "$source/meson.build" looks
    cp "$tests/looks.cpp" looks/model.cpp
    meson setup looks/build looks >log || { cat log; exit 1; }
    meson compile -C looks/build >log || { cat log; exit 1; }
    looks shared looks/build/model
    ;;
esac
