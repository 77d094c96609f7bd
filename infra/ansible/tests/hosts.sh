#!/usr/bin/env bash
# Starts test hosts: containers that boot systemd and answer SSH. It needs no image registry, no cloud and no KVM.
#
#   hosts.sh engine                starts the container engine, or prints why it cannot start
#   hosts.sh up NAME=ADDRESS...    builds the image if it is missing, starts the hosts and waits until they have booted;
#                                  addresses are of 172.30.99.0/24 or of fd30:99::/64
#   hosts.sh kill NAME             stops a host without a shutdown, like a power failure
#   hosts.sh limit NAME CPUS       limits the CPUs of a host, such as 0.6
#   hosts.sh down                  stops the hosts and the engine
#   hosts.sh exec NAME COMMAND...  runs a command in a host
#
# All files are in $STREAM_BENCH_HOSTS (~/.cache/stream-bench/hosts): the engine's data, the image and the key. The
# hosts run in the control group of the caller. They have no SYS_TIME capability, because setting the time in such a
# container would change the clock of this machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${STREAM_BENCH_HOSTS:-${XDG_CACHE_HOME:-$HOME/.cache}/stream-bench/hosts}
networks=(--subnet 172.30.99.0/24)
socket=$home/engine.sock
export DOCKER_HOST=unix://$socket
. "$here/debian.sh"

log() { printf 'hosts: %s\n' "$*" >&2; }
fail() { printf 'hosts: %s\n' "$*" >&2; exit 3; }

check_requirements() {
  local missing=()
  for command in mmdebstrap dockerd docker iptables ssh-keygen rsync; do
    PATH=$PATH:/usr/sbin command -v "$command" >/dev/null || missing+=("$command")
  done
  [ ${#missing[@]} = 0 ] || fail "missing: ${missing[*]}; run: apt-get install -y docker.io mmdebstrap iptables openssh-client rsync"
  [ "$(id -u)" = 0 ] || fail "a container engine must be started: run as root"
}

start_engine() {
  docker version >/dev/null 2>&1 && return
  mkdir -p "$home"
  local parent
  parent=$(sed -n 's/^[0-9]*:freezer://p' /proc/self/cgroup)
  setsid dockerd --data-root "$home/data" --exec-root "$home/exec" --pidfile "$home/engine.pid" -H "unix://$socket" \
    ${parent:+--cgroup-parent "$parent"} >"$home/engine.log" 2>&1 </dev/null &
  for _ in $(seq 100); do
    docker version >/dev/null 2>&1 && return
    sleep 0.2
  done
  fail "the engine did not start within 20 s: $home/engine.log"
}

build_image() {
  docker image inspect "$image" >/dev/null 2>&1 && return
  log "building the image (about half a minute)"
  debian "$home/image.tar"
  docker import -c 'CMD ["/lib/systemd/systemd"]' -c 'ENV container=docker' "$home/image.tar" "$image" >/dev/null
  rm -f "$home/image.tar"
}

up() {
  check_requirements
  start_engine
  make_key
  image=bench-host:$(fingerprint build_image)
  build_image
  [[ $* != *:* ]] || networks+=(--ipv6 --subnet fd30:99::/64)
  docker network inspect bench-net >/dev/null 2>&1 || docker network create "${networks[@]}" bench-net >/dev/null
  local cache host name address option
  cache=$(python3 -m pip cache dir 2>/dev/null || true)
  for host in "$@"; do
    name=${host%%=*} address=${host#*=} option=--ip
    [[ $address != *:* ]] || option=--ip6
    docker rm -f "$name" >/dev/null 2>&1 || true
    docker run -d --name "$name" --hostname "$name" --network bench-net "$option" "$address" --stop-signal SIGRTMIN+3 --cgroupns=private \
      --cap-add SYS_ADMIN --cap-add NET_ADMIN --cap-add SYS_NICE --cap-add SYS_PTRACE --cap-add IPC_LOCK --cap-add SYSLOG \
      --cap-add DAC_READ_SEARCH --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
      --tmpfs /run --tmpfs /run/lock --tmpfs /tmp:exec ${cache:+-v "$cache:/root/.cache/pip"} "$image" >/dev/null
  done
  for host in "$@"; do
    name=${host%%=*}
    wait_for_boot "$name" || fail "$name has not booted: $(docker exec "$name" systemctl is-system-running 2>&1)"
    docker exec "$name" touch -d 2000-01-01 /var/lib/apt/lists  # a new host has empty, outdated package lists
    log "$name has booted at ${host#*=}"
  done
}

wait_for_boot() {
  for _ in $(seq 100); do
    [ "$(docker exec "$1" systemctl is-system-running 2>/dev/null)" = running ] && return
    sleep 0.2
  done
  return 1
}

down() {
  [ -e "$home/engine.pid" ] || { log "no host is running"; return; }
  docker ps -aq | xargs -r docker rm -f >/dev/null
  docker network rm bench-net >/dev/null 2>&1 || true
  local pid
  pid=$(cat "$home/engine.pid")
  kill "$pid"
  for _ in $(seq 100); do
    kill -0 "$pid" 2>/dev/null || { log "all hosts are stopped"; return; }
    sleep 0.2
  done
  fail "the engine (pid $pid) does not stop: $home/engine.log"
}

case ${1:-} in
  engine) check_requirements; start_engine ;;
  up) shift; up "$@" ;;
  kill) docker kill "$2" >/dev/null ;;
  limit) docker update --cpus "$3" "$2" >/dev/null ;;
  exec) shift; exec docker exec "$@" ;;
  down) down ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$here/$(basename "$0")"; exit 2 ;;
esac
