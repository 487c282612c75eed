#!/bin/bash
# on_hosts.sh PROGRAM [ARGUMENT…]: runs a program as two processes on two hosts, each a network namespace of this machine,
# which reach each other over TCP alone. Needs root.
set -euo pipefail
skip() {
  echo "REEL-SKIP: $1"
  exit 77
}
((EUID == 0)) || skip "network namespaces need root"
command -v ip >/dev/null || skip "there is no ip, of the package iproute2"
hosts=("reel$$a" "reel$$b")
agent=$(mktemp)
trap 'rm -f "$agent"; for host in "${hosts[@]}"; do ip netns del "$host" 2>/dev/null || true; done' EXIT
for host in "${hosts[@]}"; do ip netns add "$host" 2>/dev/null || skip "this machine allows no network namespaces"; done
ip link add name left netns "${hosts[0]}" type veth peer name right netns "${hosts[1]}" 2>/dev/null || skip "there are no veth devices"
ip -n "${hosts[0]}" addr add 10.213.0.1/24 dev left
ip -n "${hosts[1]}" addr add 10.213.0.2/24 dev right
for host in "${hosts[@]}"; do ip -n "$host" link set lo up; done
ip -n "${hosts[0]}" link set left up
ip -n "${hosts[1]}" link set right up
# The agent that mpirun calls in place of ssh: enters the namespace, with a host name of its own.
cat >"$agent" <<'AGENT'
#!/bin/bash
host=$1
shift
exec ip netns exec "$host" unshare --uts bash -c "hostname $host; $*"
AGENT
chmod +x "$agent"
# Open MPI frees not all of its memory at the end.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
"$agent" "${hosts[0]}" mpirun --quiet --mca plm_rsh_agent "$agent" -H "${hosts[0]}:1,${hosts[1]}:1" --mca btl tcp,self \
  --mca btl_tcp_if_include 10.213.0.0/24 --mca oob_tcp_if_include 10.213.0.0/24 --bind-to none --mca mpi_yield_when_idle 1 -np 2 "$@"
