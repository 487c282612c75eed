#!/bin/bash
# same.sh COMMAND…: fails unless two runs have equal output except for times in seconds.
set -uo pipefail
without_times() { sed -E 's/ +[0-9.]+ s( |$)/ /'; }
first=$("$@" | without_times) && second=$("$@" | without_times) || exit 1
[[ $first == "$second" ]] && exit
diff <(echo "$first") <(echo "$second")
exit 1
