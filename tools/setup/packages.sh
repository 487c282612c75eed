# The distribution packages that each part of reel needs, and functions that install the missing ones. To be sourced.
# COMMAND=PACKAGE is met by any such command on PATH (a newer Meson from elsewhere, say); a plain PACKAGE
# must be installed by the distribution. The names hold for Debian 12 and Ubuntu 24.04.

compiler=${CXX:-g++}
library_packages=("${compiler%% *}=g++" meson=meson ninja=ninja-build pkg-config=pkg-config python3=python3
  libfmt-dev libdnnl-dev libeigen3-dev libhwy-dev libboost-context-dev nlohmann-json3-dev
  zlib1g-dev libzip-dev libpng-dev libjpeg-dev)
sample_packages=(libcli11-dev)
test_packages=(catch2 cmake=cmake make=make gdb=gdb dot=graphviz)
# Judges in Python, which have a virtual environment.
judge_packages=(python3-venv)
hdf5_packages=(libhdf5-dev)
sound_packages=(libsndfile1-dev)
figure_packages=(libcairo2-dev)
# Programs of several processes.
dist_packages=(libopenmpi-dev openmpi-bin)
onnx_packages=(libonnx-dev libprotobuf-dev)
fuzz_packages=(clang++-14=clang-14 libclang-rt-14-dev)
pytorch_judge_packages=(python3-torch)
# The Python module; another Python than the distribution's has its own headers.
python_packages=(python3-venv python3-dev)
peer_packages=(libtorch-dev)
benchmark_packages=(libbenchmark-dev valgrind=valgrind)
# A fair libtorch multiplies with OpenBLAS on OpenMP threads.
peer_benchmark_packages=(libtorch-dev libopenblas0-openmp)
pytorch_packages=(pip3=python3-pip)
# One version, since each lays out "requires" and lambdas differently; both distributions have this one.
format_packages=(clang-format-16=clang-format-16)
# One version here, too, since each finds other faults: the one that reads C++20 best and takes least time.
lint_packages=(clang-tidy-19=clang-tidy-19)
# Scripts of pages.
script_lint_packages=(tsc=node-typescript)
# The compilers of Debian 12, whose warnings tools/lint --warnings looks for.
warning_compilers=(clang-14 clang-16 clang-19)
docs_packages=(doxygen=doxygen)
package_packages=(dpkg-dev binutils)

# Whether ensure_packages changed anything: a build directory configured before must then look again.
packages_were_installed=no

# Prints those of its arguments that are not met, as package names.
missing_packages() {
  local need installed=" " plain=()
  for need; do [[ $need == *=* ]] || plain+=("$need"); done
  if ((${#plain[@]})) && command -v dpkg-query >/dev/null; then
    # dpkg-query fails if one of them is unknown, and prints the others all the same.
    installed=" $({ dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${plain[@]}" 2>/dev/null || true; } |
      sed -n 's/^installed //p' | tr '\n' ' ')"
  fi
  for need; do
    if [[ $need == *=* ]]; then
      command -v "${need%=*}" >/dev/null || echo "${need##*=}"
    elif command -v dpkg-query >/dev/null; then
      [[ $installed == *" $need "* ]] || echo "$need"
    fi  # No dpkg: Meson looks for the libraries and names what it does not find.
  done
}

# ensure_packages NEED…: installs what is missing, or says what is missing and exits.
ensure_packages() {
  local missing as_root=() log
  missing=$(missing_packages "$@")  # not read from <(…), which would hide a failure
  [[ -n $missing ]] || return 0
  mapfile -t missing <<<"$missing"
  if ! command -v apt-get >/dev/null; then
    echo "reel: please install ${missing[*]} (Debian's names; there is no apt-get here to do it)." >&2
    exit 1
  fi
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "reel: please install ${missing[*]} (that needs root, and there is no sudo here)." >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]} with apt-get …" >&2
  log=$(mktemp)
  # Other package runs hold the lock for minutes on a machine that has just started.
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  # A failed update can come from a source that has nothing to do with us: the install decides.
  "${apt[@]}" update >"$log" 2>&1 </dev/null || true
  if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    echo "reel: apt-get could not install ${missing[*]} (its messages are above)." >&2
    exit 1
  fi
  rm -f "$log"
  packages_were_installed=yes
}
