#!/bin/bash
# own_kernel.sh BUILD ROOT NVCC MODULE [STAND_IN]: builds a copy of samples/outside/kernel, which has a kernel of its own, with the
# library in BUILD, and runs it on the CPU and on the GPU of MODULE: with STAND_IN preloaded there is one that computes nothing and
# checks the calls. Skipped (77) without a GPU.
set -euo pipefail
build=$1 root=$2 nvcc=$3 stand_in=${5-}
export REEL_CUDA_MODULE=$4 LD_LIBRARY_PATH=$build/lib:${LD_LIBRARY_PATH-}
architecture=sm_90
if [[ -z $stand_in ]]; then
  nvidia-smi >/dev/null 2>&1 || { echo "there is no GPU"; exit 77; }
  architecture=native
fi
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp "$root"/samples/outside/kernel/{Makefile,*.cpp,*.cu,*.h} "$place"
cd "$place"
# The pkg-config file of an installed library; tests/install tests how that is found.
printf '%s\n' 'Name: reel' 'Description: in a build directory' 'Version: 0' "Cflags: -std=c++20 -I$root/include" \
  "Libs: -L$build/lib -lreel" >reel.pc
export PKG_CONFIG_PATH=$place
make "NVCC=$nvcc" "GPU=$architecture" >log 2>&1 || { cat log; exit 1; }

./main cpu >cpu
grep -q '^gradcheck: all [0-9]* derivatives agree$' cpu && grep -q '^gradgradcheck: all [0-9]* derivatives agree$' cpu ||
  { echo "on the CPU it prints"; cat cpu; exit 1; }
grep -Eq '^loss (0\.[1-9]|[1-9]).*, then 0\.00$' cpu || { echo "it does not learn:"; cat cpu; exit 1; }
if [[ -z $stand_in ]]; then
  ./main cuda >gpu
  diff cpu gpu || { echo "on the GPU it prints something else"; exit 1; }
  exit
fi
LD_PRELOAD=$stand_in REEL_STAND_IN_REPORT=$place/report ./main cuda >gpu || { cat gpu; exit 1; }
if grep '^violation' report; then exit 1; fi
# Its kernel is launched forwards and backwards in each of 300 steps, and in both checks of gradients.
launches=$(awk '$2 == "launch" { print $3 }' report)
((launches > 2000)) || { echo "there were only $launches launches"; exit 1; }
echo "a kernel of its own: $launches launches with all others"
