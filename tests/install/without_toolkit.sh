#!/bin/bash
# without_toolkit.sh SOURCE OPTION…: what the build does where there is no CUDA toolkit. Where there is one, it is hidden.
set -euo pipefail
export PATH=$PATH:/usr/local/cuda/bin:/opt/cuda/bin
if nvcc=$(command -v nvcc); then
  folder=$(dirname "$(dirname "$(realpath "$nvcc")")")
  as_root=()
  ((EUID == 0)) || as_root=(--map-root-user)
  if ! unshare "${as_root[@]}" --mount mount -t tmpfs none "$folder" 2>/dev/null; then
    echo "the toolkit cannot be hidden: this user may not mount anything"
    exit 77
  fi
  exec unshare "${as_root[@]}" --mount bash -c 'mount -t tmpfs none "$0" && exec "$@"' "$folder" "$0" "$@"
fi

source=$1
shift
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
configure=(meson setup "$@" -Dtests=disabled -Dsamples=disabled -Dtools=disabled -Dpeer=disabled)

"${configure[@]}" -Dcuda=auto "$place/auto" "$source" >"$place/log" || { cat "$place/log"; exit 1; }
if meson introspect --targets "$place/auto" | grep -q '"reel_cuda"'; then
  echo "without the toolkit, -Dcuda=auto still builds libreel_cuda.so"
  exit 1
fi
if "${configure[@]}" -Dcuda=enabled "$place/enabled" "$source" >"$place/log"; then
  echo "without the toolkit, -Dcuda=enabled is no error"
  exit 1
fi
grep -q 'ERROR: .*-Dcuda=enabled needs the CUDA toolkit' "$place/log" || { tail -n 3 "$place/log"; exit 1; }
