#!/bin/bash
# same_cases.sh PROGRAM SCRIPT: whether both list the same names, in the same order.
diff <("$1" --list) <(python3 "$2" --list)
