#!/bin/bash
# check_packages.sh ROOT VERSION: installs the packages of ROOT/build/packages in a fresh system in a folder, and builds and runs
# programs there. The folder is removed at the end. Its mounts belong to this process, and end with it however it ends.
set -euo pipefail
root=$1 version=$2
if [[ -z ${REEL_OWN_MOUNTS-} ]]; then
  place=$(mktemp -d /var/tmp/reel-check-XXXXXX)
  child=
  # Its end ends all processes in its namespace: nothing is written to the folder any more when it is removed.
  clean_up() {
    if [[ -n $child ]]; then
      kill -KILL "$child" 2>/dev/null || true
      wait "$child" 2>/dev/null || true
    fi
    rm -rf --one-file-system "$place"
  }
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  REEL_OWN_MOUNTS=$place unshare --mount --pid --fork --kill-child=KILL "$0" "$@" &
  child=$!
  wait "$child" && status=0 || status=$?
  child=
  exit "$status"
fi

place=$REEL_OWN_MOUNTS
system=$place/system
log=$place/log
fail() {
  tail -n 40 "$log" >&2
  echo "tools/package: $1 (the messages are above)." >&2
  exit 1
}

release=$(. /etc/os-release && echo "$VERSION_CODENAME")
# The distribution's own sources among those of this machine.
apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
  awk -v here="$release" '$2 == here || index($2, here "-") == 1 { print "deb", $1, $2, $3 }' | sort -u >"$place/sources.list"
mirror=$(awk -v here="$release" '$3 == here && $4 == "main" { print $2; exit }' "$place/sources.list")
if [[ -z $mirror ]]; then
  echo "tools/package: this machine has no list of packages of its release; run apt-get update first." >&2
  exit 1
fi
echo "Installing $release from $mirror in $system …"
debootstrap --variant=minbase "$release" "$system" "$mirror" >"$log" 2>&1 || fail "debootstrap failed"
mount -t proc proc "$system/proc"
cp "$place/sources.list" "$system/etc/apt/sources.list"
cp /etc/resolv.conf "$system/etc/resolv.conf"
mkdir "$system/packages"
packages=() to_run=()
for file in "$root"/build/packages/*.deb; do
  package=$(dpkg-deb -f "$file" Package)
  cp "$file" "$system/packages/$package.deb"
  packages+=("$package")
  [[ $package == *-dev ]] || to_run+=("/packages/$package.deb")
done

inside() { chroot "$system" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
install() {
  inside apt-get install -y --no-install-recommends "$@" >"$log" 2>&1 </dev/null || fail "apt-get could not install $*"
}
inside apt-get update >"$log" 2>&1 || fail "apt-get update failed"

# The library and the tool need nothing of what is for compiling.
install "${to_run[@]}"
[[ $(inside reel --version) == "reel $version" ]] || { echo "tools/package: reel --version is not $version" >&2; exit 1; }
inside reel devices
install /packages/libreel-dev.deb g++ pkg-config cmake make meson ninja-build
mkdir "$system/tests"
cp -r "$root/tests/install" "$root/samples/outside" "$system/tests/"
for tool in pkg-config cmake meson; do
  inside /tests/install/use.sh "$tool" /tests/outside "/tests/$tool" "$version" both || fail "a project outside does not work with $tool"
done

# Once apt has removed the packages, the subproject must be all that is left of reel.
inside apt-get purge -y "${packages[@]}" >"$log" 2>&1 || fail "apt-get could not remove the packages"
found=$(inside find /usr /etc \( -iname '*libreel*' -o -path '*/reel/*' -o -path '*/bin/reel' \) -not -path '/usr/share/doc/*')
[[ -z $found ]] || { echo "tools/package: the removed packages leave $found" >&2; exit 1; }
source "$root/tools/setup/packages.sh"
install "${library_packages[@]##*=}"
mkdir -p "$system/tests/source/subprojects/reel"
tar -C "$root" --exclude=./build --exclude=./.git -c . | tar -C "$system/tests/source/subprojects/reel" -x
cp "$root"/samples/outside/{meson.build,model.cpp} "$system/tests/source/"
echo "Building reel as a subproject …"
# Optimisation and debug information are off, which takes a third of the time.
inside meson setup -Doptimization=0 -Ddebug=false -Dreel:kernels=native -Dreel:cuda=disabled /tests/build /tests/source >"$log" 2>&1 ||
  fail "a project with reel as a subproject cannot be configured"
inside ninja -C /tests/build >"$log" 2>&1 || fail "a project with reel as a subproject cannot be built"
printed=$(inside /tests/build/model | sed -n 3p)
[[ $printed == "y = 3.00 x -1.00" ]] || { echo "tools/package: the project with the subproject printed '$printed'" >&2; exit 1; }
echo "meson: the program with reel as a subproject runs"
echo "The packages work in a fresh $release."
