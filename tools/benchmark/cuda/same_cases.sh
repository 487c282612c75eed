#!/bin/bash
# same_cases.sh PROGRAM SCRIPT: fails unless both list equal names in equal order.
diff <("$1" --list) <(python3 "$2" --list)
