#!/bin/sh
# check_syntax.sh STAMP COMPILER…: compiles without generating code, and touches STAMP if that went well.
set -e
stamp=$1
shift
"$@" -fsyntax-only
touch "$stamp"
