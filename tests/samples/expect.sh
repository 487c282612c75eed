#!/bin/bash
# expect.sh STATUS out|err PATTERN COMMAND…: the command exits with the status. With `out`, a line on stdout matches
# the extended regular expression (`last`: its last line); with `err`, the one line on stderr does.
set -uo pipefail
status=$1 where=$2 pattern=$3
shift 3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$@" >"$directory/out" 2>"$directory/err" </dev/null
found=$?
case $where in
  out) text=$(cat "$directory/out") ;;
  last) text=$(tail -n 1 "$directory/out") ;;
  err) text=$(cat "$directory/err") ;;
esac
matching=$(grep -cE -- "$pattern" <<<"$text")
if [[ $found == "$status" && $matching != 0 ]] && [[ $where != err || $text != *$'\n'* ]]; then exit; fi
echo "exit status $found, wanted $status; wanted '$pattern' in:"
echo "$text"
[[ $where == err ]] || cat "$directory/err"
exit 1
