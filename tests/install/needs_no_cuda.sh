#!/bin/bash
# needs_no_cuda.sh LIBRARY: fails unless it can be loaded and linked with where no CUDA library is installed.
set -euo pipefail
parts='cuda|cublas|cudnn|curand|cusolver|cusparse|cufft|nvrtc|nvToolsExt|nccl'
libraries=$(readelf -d "$1" | grep NEEDED | grep -E "lib($parts)" || true)
symbols=$(nm -D --undefined-only "$1" | grep -E " U (__)?($parts)[A-Z_]| U cu[A-Z]" || true)
[[ -z $libraries$symbols ]] || { printf '%s needs\n%s\n%s\n' "$1" "$libraries" "$symbols"; exit 1; }
