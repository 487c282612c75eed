#!/bin/bash
# in_folder.sh FOLDER PROGRAM: runs a program that writes files to its working directory.
set -euo pipefail
program=$(realpath "$2")
cd "$1"
"$program"
