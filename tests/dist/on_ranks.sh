#!/bin/bash
# on_ranks.sh RANKS PROGRAM [ARGUMENT…]: runs a program as several processes of this machine, which need not have as many
# cores.
# Open MPI frees not all of its memory at the end.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
exec mpirun --quiet --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -np "$@"
