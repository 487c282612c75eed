# Builds for another processor, whose programs QEMU runs. To be sourced after packages.sh and build.sh, with $root set.

# The processors, as the compiler and QEMU name them, and as the distribution does.
declare -A cross_architectures=([aarch64]=arm64)

# set_up_cross PROCESSOR: sets cross_packages, cross_folder, where the libraries for the processor are unpacked, and
# cross_launcher, the command that runs its programs.
set_up_cross() {
  local processor=$1
  cross_packages=("$processor-linux-gnu-g++=g++-$processor-linux-gnu" "qemu-$processor-static=qemu-user-static"
    meson=meson ninja=ninja-build pkg-config=pkg-config python3=python3)
  cross_folder=build/$processor-packages
  cross_launcher=("qemu-$processor-static" -L "/usr/$processor-linux-gnu")
}

# unpack_cross_libraries PROCESSOR: unpacks the distribution's libraries for the processor in cross_folder, where they are not.
unpack_cross_libraries() {
  local processor=$1 folder=$root/$cross_folder archives package link
  local wanted="${library_packages[*]} ${sample_packages[*]} ${test_packages[*]}"
  [[ $(cat "$folder/unpacked" 2>/dev/null) != "$wanted" ]] || return 0
  echo "Fetching libraries for $processor into $cross_folder …" >&2
  rm -rf "$folder"
  mkdir -p "$folder/usr/lib"
  ln -s usr/lib "$folder/lib"  # as on systems where the folders are merged
  archives=$(mktemp -d)
  if ! "$root/tools/bundle-deps" --arch "${cross_architectures[$processor]}" "$archives" >/dev/null; then
    rm -rf "$archives"
    echo "reel: the libraries for $processor could not be fetched (the messages are above)." >&2
    exit 1
  fi
  for package in "$archives"/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$folder"
  done
  rm -rf "$archives"
  # Links to the root of a system point into the folder.
  while IFS= read -r -d '' link; do
    ln -sfr "$folder$(readlink "$link")" "$link"
  done < <(find "$folder" -type l -lname '/*' -print0)
  echo "$wanted" >"$folder/unpacked"
}

# write_cross_file PROCESSOR: prints the path of Meson's description of the compiler and the processor.
write_cross_file() {
  local file=$root/build/$1.ini cache= launcher
  if command -v ccache >/dev/null; then cache="'ccache', "; fi
  printf -v launcher "'%s', " "${cross_launcher[@]}"
  sed -e "s|@PROCESSOR@|$1|; s|@CACHE@|$cache|; s|@LAUNCHER@|${launcher%, }|" "$root/tools/setup/cross_file.ini.in" >"$file.new"
  # Meson configures again what is older than this file.
  if cmp -s "$file.new" "$file"; then rm "$file.new"; else mv "$file.new" "$file"; fi
  echo "$file"
}
