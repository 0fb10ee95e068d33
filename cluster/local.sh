#!/usr/bin/env bash
# A Ray cluster of several nodes on this machine, to try raybo and its handling of lost nodes.
#
#   cluster/local.sh up [NODES] [CPUS]   start a head without CPUs and NODES workers (3, of 2 CPUs)
#   eval "$(cluster/local.sh env)"       make this shell use it
#   cluster/local.sh kill NODE           kill worker NODE (1, 2, ...) as a power cut would
#   cluster/local.sh status              which nodes run
#   cluster/local.sh down                end what `up` started, and nothing else
#
# It is guarded by a token of its own, since Ray listens on all interfaces, and keeps all its
# files in one folder (RAYBO_LOCAL_DIR, default /tmp/raybo-local-UID): other Rays on this machine
# are not touched and do not find it. Never `ray stop` here: that ends every Ray of the machine.
set -euo pipefail

dir=${RAYBO_LOCAL_DIR:-/tmp/raybo-local-$(id -u)} # short: Ray puts Unix sockets below it
pids=$dir/pids # lines of: name, process id; each process leads a group of its own
ray=${RAY:-ray}
python=${PYTHON:-python}

export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$dir/token
# A dead node is noticed in about 5 s instead of 15; see README.md for what this costs.
export RAY_health_check_period_ms=1000 RAY_health_check_timeout_ms=2000
export RAY_health_check_failure_threshold=5

fail() {
    echo "local.sh: $1" >&2
    exit 1
}

address() { cat "$dir/head/ray_current_cluster"; }

# Whether process $1 is still a node of ours, and not another that was given its number.
is_ours() { ps -ww -o args= -p "$1" 2>/dev/null | grep -qF -- "--temp-dir=$dir/"; }

# Start a node called $1 as the leader of a process group, with the remaining arguments. Each has
# a folder of its own: in a shared one, nodes that start together lose a race for their sockets.
start_node() {
    local name=$1
    shift
    "$python" -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])' \
        "$ray" start --block --temp-dir="$dir/$name" --disable-usage-stats "$@" \
        </dev/null >"$dir/$name.log" 2>&1 &
    echo "$name $!" >>"$pids"
}

wait_for_head() {
    local pid
    pid=$(awk '$1 == "head" {print $2}' "$pids")
    for _ in $(seq 300); do
        [ -s "$dir/head/ray_current_cluster" ] && return
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.2
    done
    tail -n 20 "$dir/head.log" >&2
    fail "the head did not start; its log is $dir/head.log"
}

wait_for_nodes() {
    "$python" - "$(address)" "$1" <<'PYTHON' && return
import sys
import time

import ray

ray.init(address=sys.argv[1], logging_level="error", log_to_driver=False)
deadline = time.monotonic() + 90
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[2]):
    if time.monotonic() > deadline:
        sys.exit(1)
    time.sleep(0.2)
PYTHON
    tail -n 20 "$dir"/worker-*.log >&2
    fail "not all nodes came up; the end of their logs is above"
}

up() {
    local nodes=${1:-3} cpus=${2:-2} i
    [[ $nodes =~ ^[1-9][0-9]*$ && $cpus =~ ^[1-9][0-9]*$ ]] || fail "up takes two whole numbers"
    [ -e "$pids" ] && fail "$dir is in use; run 'cluster/local.sh down' first"
    (umask 077 && mkdir -p "$dir" &&
        "$python" -c 'import secrets; print(secrets.token_hex(32), end="")' >"$dir/token")
    trap 'down >/dev/null' ERR EXIT # a cluster that is only half up is taken down again
    start_node head --head --port=0 --num-cpus=0 --include-dashboard=false \
        --dashboard-agent-listen-port=0
    wait_for_head
    for i in $(seq "$nodes"); do
        start_node "worker-$i" --address="$(address)" --num-cpus="$cpus" \
            --dashboard-agent-listen-port=0 --include-log-monitor=false
    done
    wait_for_nodes $((nodes + 1))
    trap - ERR EXIT
    echo "$nodes nodes of $cpus CPUs at $(address); to use them:"
    echo
    echo "    eval \"\$(cluster/local.sh env)\""
    echo "    python cluster/smoke.py --nodes $nodes"
    echo "    cluster/local.sh down"
}

print_env() {
    [ -e "$pids" ] || fail "nothing is up; run 'cluster/local.sh up' first"
    echo "export RAY_ADDRESS=$(address) RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$dir/token"
}

status() {
    [ -e "$pids" ] || fail "nothing is up; run 'cluster/local.sh up' first"
    while read -r name pid; do
        if is_ours "$pid"; then echo "$name  process $pid"; else echo "$name  gone"; fi
    done <"$pids"
}

kill_node() {
    local pid
    [ -e "$pids" ] || fail "nothing is up; run 'cluster/local.sh up' first"
    pid=$(awk -v name="worker-$1" '$1 == name {print $2}' "$pids")
    [ -n "$pid" ] && is_ours "$pid" || fail "no worker '$1' is running; see 'status'"
    kill -KILL -- "-$pid"
    echo "killed worker $1"
}

# Send signal $1 to all nodes that still run ($2: prefix of the id, "-" for its group); true if
# there was one.
signal_all() {
    local some=1 name pid
    while read -r name pid; do
        if is_ours "$pid"; then
            kill "-$1" -- "$2$pid" 2>/dev/null || true
            some=0
        fi
    done <"$pids"
    return $some
}

down() {
    [ -e "$pids" ] || fail "nothing is up"
    signal_all TERM "" || true # the leader of a group ends the rest of it in good order
    for _ in $(seq 75); do     # within 15 s
        signal_all 0 "" || break
        sleep 0.2
    done
    signal_all KILL - || true
    rm -rf -- "$dir"/head* "$dir"/worker-* "$dir/token" "$pids"
    rmdir -- "$dir" 2>/dev/null || true
    echo "down"
}

case ${1:-} in
    up) up "${@:2}" ;;
    env) print_env ;;
    status) status ;;
    kill) kill_node "${2:-}" ;;
    down) down ;;
    *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0" >&2; exit 2 ;;
esac
