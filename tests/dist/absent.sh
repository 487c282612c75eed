#!/bin/bash
echo "REEL-SKIP: reel was built without Open MPI"
exit 77
