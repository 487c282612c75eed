#!/bin/bash
# without_optional_libraries.sh SOURCE OPTION…: the build without the libraries that optional modules need. Where they are
# installed, they are hidden from pkg-config.
set -euo pipefail
source=$1
shift
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

real=$(command -v "${PKG_CONFIG:-pkg-config}")
cat >"$place/pkg-config" <<SCRIPT
#!/bin/bash
for argument; do
  case \$argument in hdf5* | sndfile | cairo | ompi | protobuf) exit 1 ;; esac
done
exec $real "\$@"
SCRIPT
chmod +x "$place/pkg-config"
configure=(env "PKG_CONFIG=$place/pkg-config" meson setup "$@" -Dcuda=disabled -Dtests=disabled -Dsamples=disabled
  -Dtools=disabled -Dpeer=disabled)

"${configure[@]}" "$place/auto" "$source" >"$place/log" 2>&1 || { cat "$place/log"; exit 1; }
if meson introspect --targets "$place/auto" | grep -q '"reel_hdf5"'; then
  echo "without HDF5, -Dhdf5=auto still builds libreel_hdf5.so"
  exit 1
fi
if meson introspect --targets "$place/auto" | grep -q '"reel_dist"'; then
  echo "without Open MPI, -Ddist=auto still builds libreel_dist.so"
  exit 1
fi
if meson introspect --targets "$place/auto" | grep -q '"reel_onnx"'; then
  echo "without protobuf, -Donnx=auto still builds libreel_onnx.so"
  exit 1
fi
if "${configure[@]}" -Dhdf5=enabled "$place/enabled" "$source" >"$place/log" 2>&1; then
  echo "without HDF5, -Dhdf5=enabled is no error"
  exit 1
fi
grep -q "ERROR: C++ .*hdf5.* not found" "$place/log" || { tail -n 3 "$place/log"; exit 1; }
