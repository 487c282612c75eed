#!/bin/bash
# The thread-local variables of a library take at most 128 bytes: a program that opens it later, such as Python, has about
# 1600 bytes left for those of all libraries whose variables are reached without a call.
# Usage: small_static_tls.sh LIBRARY
set -euo pipefail
size=$(LC_ALL=C readelf -lW "$1" | awk '$1 == "TLS" { print $6 }')
[[ -n $size ]] || { echo "$1 has no thread-local variables, which its context is"; exit 1; }
echo "$((size)) bytes"
((size <= 128)) || {
  echo "$1: keep objects of a thread in a PerThread (lib/core/per_thread.h), which takes nothing here:"
  LC_ALL=C readelf -sW "$1" | awk '$4 == "TLS" && $7 != "UND" { print $3, $8 }' | sort -rn | head -n 20
  exit 1
}
