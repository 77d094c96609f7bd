#!/usr/bin/env bash
# Hosts to test on, as containers that boot systemd and answer SSH; needs no image registry, no cloud and no KVM.
#
#   hosts.sh up NAME=ADDRESS...    builds the image where it is missing, starts the hosts, waits until they have booted
#   hosts.sh kill NAME             cuts a host's power
#   hosts.sh down                  ends the hosts and the engine that they ran in
#   hosts.sh exec NAME COMMAND...  runs a command in a host
#
# Everything lies in $STREAM_BENCH_HOSTS (~/.cache/stream-bench/hosts): the engine's data, the image, the key. The hosts live in the
# control group of whoever starts them. They have no SYS_TIME: a time zone that is set in such a container would move the clock of
# this machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${STREAM_BENCH_HOSTS:-${XDG_CACHE_HOME:-$HOME/.cache}/stream-bench/hosts}
network=172.30.99.0/24
socket=$home/engine.sock
export DOCKER_HOST=unix://$socket
packages=systemd,systemd-sysv,dbus,python3,python3-apt,openssh-server,sudo,iproute2,ca-certificates,procps

say() { printf 'hosts: %s\n' "$*" >&2; }
stop() { printf 'hosts: %s\n' "$*" >&2; exit 3; }

needs() {
  local missing=()
  for command in mmdebstrap dockerd docker iptables ssh-keygen; do
    PATH=$PATH:/usr/sbin command -v "$command" >/dev/null || missing+=("$command")
  done
  [ ${#missing[@]} = 0 ] || stop "missing: ${missing[*]}; run: apt-get install -y docker.io mmdebstrap iptables openssh-client"
  [ "$(id -u)" = 0 ] || stop "an engine of its own is started: run as root"
}

engine() {
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
  stop "the engine did not start within 20 s: $home/engine.log"
}

image() {
  [ -e "$home/key" ] || ssh-keygen -q -t ed25519 -N '' -C stream-bench-test -f "$home/key"
  docker image inspect "bench-host:$mark" >/dev/null 2>&1 && return
  say "building the image (about half a minute)"
  mmdebstrap --quiet --variant=minbase --include="$packages" \
    --customize-hook='mkdir -p "$1/usr/local/share/ca-certificates" && cp -L /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null || true' \
    --customize-hook='chroot "$1" update-ca-certificates >/dev/null 2>&1' \
    --customize-hook='rm -rf "$1"/etc/apt/sources.list* && cp -a /etc/apt/sources.list.d "$1/etc/apt/" && cp -a /etc/apt/apt.conf.d/99* "$1/etc/apt/apt.conf.d/" 2>/dev/null || true' \
    --customize-hook='find "$1/etc/apt/sources.list.d" -type f ! -name "debian*" -delete; cp /etc/pip.conf "$1/etc/pip.conf" 2>/dev/null || true' \
    --customize-hook='chroot "$1" useradd -m -s /bin/bash operator1' \
    --customize-hook='echo "operator1 ALL=(ALL) NOPASSWD: ALL" >"$1/etc/sudoers.d/operator1"' \
    --customize-hook="install -d -m 700 -o 1000 -g 1000 \"\$1/home/operator1/.ssh\" && install -m 600 -o 1000 -g 1000 '$home/key.pub' \"\$1/home/operator1/.ssh/authorized_keys\"" \
    bookworm "$home/image.tar"
  docker import -c 'CMD ["/lib/systemd/systemd"]' -c 'ENV container=docker' "$home/image.tar" "bench-host:$mark" >/dev/null
  rm -f "$home/image.tar"
}

up() {
  needs
  mark=$( (echo "$packages"; declare -f image) | sha256sum | cut -c1-12)  # a recipe that has changed makes another image
  engine
  image
  docker network inspect bench-net >/dev/null 2>&1 || docker network create --subnet "$network" bench-net >/dev/null
  local cache host name address
  cache=$(python3 -m pip cache dir 2>/dev/null || true)
  for host in "$@"; do
    name=${host%%=*} address=${host#*=}
    docker rm -f "$name" >/dev/null 2>&1 || true
    docker run -d --name "$name" --hostname "$name" --network bench-net --ip "$address" --stop-signal SIGRTMIN+3 --cgroupns=private \
      --cap-add SYS_ADMIN --cap-add NET_ADMIN --cap-add SYS_NICE --cap-add SYS_PTRACE --cap-add IPC_LOCK --cap-add SYSLOG \
      --cap-add DAC_READ_SEARCH --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
      --tmpfs /run --tmpfs /run/lock --tmpfs /tmp:exec ${cache:+-v "$cache:/root/.cache/pip"} "bench-host:$mark" >/dev/null
  done
  for host in "$@"; do
    name=${host%%=*}
    booted "$name" || stop "$name has not booted: $(docker exec "$name" systemctl is-system-running 2>&1)"
    docker exec "$name" touch -d 2000-01-01 /var/lib/apt/lists  # a fresh host's lists of packages are empty, and old
    say "$name has booted at ${host#*=}"
  done
}

booted() {
  for _ in $(seq 100); do
    [ "$(docker exec "$1" systemctl is-system-running 2>/dev/null)" = running ] && return
    sleep 0.2
  done
  return 1
}

down() {
  [ -e "$home/engine.pid" ] || { say "nothing runs"; return; }
  docker ps -aq | xargs -r docker rm -f >/dev/null
  docker network rm bench-net >/dev/null 2>&1 || true
  local pid
  pid=$(cat "$home/engine.pid")
  kill "$pid"
  for _ in $(seq 100); do
    kill -0 "$pid" 2>/dev/null || { say "nothing runs any more"; return; }
    sleep 0.2
  done
  stop "the engine (pid $pid) does not end: $home/engine.log"
}

case ${1:-} in
  up) shift; up "$@" ;;
  kill) docker kill "$2" >/dev/null ;;
  exec) shift; exec docker exec "$@" ;;
  down) down ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$here/$(basename "$0")"; exit 2 ;;
esac
