# Configures and builds a Meson directory. To be sourced after packages.sh, with $root set.
# Everything is said on stderr: stdout belongs to the program that is built and run.

# Whether all of the options (-Dname=value) are set like that already; asking Meson itself takes a second.
options_are_set() {
  python3 - "$@" <<'PYTHON'
import json, sys
with open(sys.argv[1] + "/meson-info/intro-buildoptions.json") as file:
    now = {option["name"]: option["value"] for option in json.load(file)}
wanted = dict(argument[2:].split("=", 1) for argument in sys.argv[2:])
written = {name: (",".join(value) if isinstance(value, list) else str(value)).lower() for name, value in now.items()}
sys.exit(any(written.get(name) != value.lower().replace(" ", ",") for name, value in wanted.items()))
PYTHON
}

# Meson compiles through ccache where that is installed; it keeps what used precompiled headers only if it is told that they
# hide no macro from it. In its depend mode, which a user may have set, it does not see that a header inside a precompiled one
# has changed, and returns objects of the old header. With comments it sees those that changed in a precompiled header, too, which
# `#pragma once` compares.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros} CCACHE_NODEPEND=1 CCACHE_COMMENTS=1

# Further arguments of Meson when it configures a directory for the first time.
setup_arguments=()

# configure_build DIRECTORY -DNAME=VALUE…
configure_build() {
  local name=$1 log command
  local directory=$root/$name
  shift
  # Meson writes this file last, so an interrupted configuration does not count.
  if [[ ! -f $directory/meson-private/coredata.dat ]]; then
    command=(meson setup "${setup_arguments[@]}" "$@" "$directory" "$root")
  elif [[ $packages_were_installed == yes ]] || ! options_are_set "$directory" "$@"; then
    command=(meson setup --reconfigure "$@" "$directory" "$root")
  else
    command=(ninja -C "$directory" build.ninja)  # only acts if a meson.build has changed
  fi
  [[ ${command[0]} == ninja ]] || echo "Configuring $name …" >&2
  log=$(mktemp)
  if ! "${command[@]}" >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    rm -f "$log"
    echo "reel: Meson could not configure $name (its messages are above)." >&2
    exit 1
  fi
  rm -f "$log"
}

# build_targets DIRECTORY [TARGET…]: all of them without TARGET.
build_targets() {
  local name=$1 quiet=() patience=""
  local directory=$root/$name
  shift
  ninja -C "$directory" -n "$@" 2>/dev/null | grep 'no work to do' >/dev/null && return
  [[ -f $directory/.ninja_log ]] || patience=" (the first time takes some minutes)"
  echo "Building ${*:-everything} in $name$patience …" >&2
  [[ -t 2 ]] || quiet=(--quiet)  # On a terminal Ninja keeps its progress on one line; elsewhere it would fill a log.
  if ! ninja -C "$directory" "${quiet[@]}" "$@" >&2 </dev/null; then
    echo "reel: the build failed (the compiler's messages are above)." >&2
    exit 1
  fi
}

# Where PyTorch's wheel is unpacked.
pytorch_folder=$root/build/pytorch-wheel

# Fetches PyTorch's wheel if it is not there, or exits.
ensure_pytorch() {
  ensure_packages "${pytorch_packages[@]}"
  python3 "$root/tools/setup/fetch_pytorch.py" "$pytorch_folder" || exit 1
}
