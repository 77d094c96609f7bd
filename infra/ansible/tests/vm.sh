#!/usr/bin/env bash
# Starts a test host with its own kernel: an emulated machine for tests that containers cannot run. It needs no KVM.
#
#   vm.sh up               builds the disk if it is missing, starts the machine and waits until it has booted
#   vm.sh exec COMMAND...  runs a command in the machine as operator1
#   vm.sh reboot           reboots the machine and waits until it has booted
#   vm.sh down             stops the machine and discards everything that it wrote
#
# The machine has a second, empty disk of 256 MB: /dev/vdb.
#
# All files are in $STREAM_BENCH_HOSTS (~/.cache/stream-bench/hosts): disk, kernel, key, console log. Only this
# computer can connect to the machine, at 127.0.0.1: SSH at port 22099 (tcp), NTP at port 22123 (udp). The machine
# reaches this computer at 10.0.2.2, with an NTP server at 10.0.2.2:22124.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${STREAM_BENCH_HOSTS:-${XDG_CACHE_HOME:-$HOME/.cache}/stream-bench/hosts}
packages=linux-image-cloud-amd64,udev
ssh_port=22099 time_port=22123 clock_port=22124
boot_seconds=240
. "$here/debian.sh"

log() { printf 'vm: %s\n' "$*" >&2; }
fail() { printf 'vm: %s\n' "$*" >&2; exit 3; }

check_requirements() {
  local missing=()
  for command in qemu-system-x86_64 mmdebstrap mke2fs ssh ssh-keygen; do
    PATH=$PATH:/usr/sbin command -v "$command" >/dev/null || missing+=("$command")
  done
  [ ${#missing[@]} = 0 ] || fail "missing: ${missing[*]}; run: apt-get install -y qemu-system-x86 mmdebstrap e2fsprogs openssh-client"
  [ "$(id -u)" = 0 ] || fail "the disk contains files of root: run as root"
}

build_disk() {
  [ -e "$disk" ] && return
  log "building the disk (about a minute)"
  local tree=$home/vm-tree
  rm -rf "$tree" "$home"/vm-*.img
  debian "$tree" --include="$packages" --dpkgopt='path-exclude=/usr/share/doc/*' \
    --customize-hook='echo "Acquire::Languages \"none\";" >"$1/etc/apt/apt.conf.d/99languages"' \
    --customize-hook='echo vm-1 >"$1/etc/hostname"; printf "127.0.0.1 localhost\n127.0.1.1 vm-1\n" >"$1/etc/hosts"' \
    --customize-hook='printf "[Match]\nName=eth0\n[Network]\nDHCP=ipv4\n" >"$1/etc/systemd/network/eth0.network"; chroot "$1" systemctl --quiet enable systemd-networkd' \
    --customize-hook='rm -f "$1/etc/resolv.conf"; echo nameserver 10.0.2.3 >"$1/etc/resolv.conf"'
  touch -d 2000-01-01 "$tree/var/lib/apt/lists"  # a new host has empty, outdated package lists
  cp "$tree"/boot/vmlinuz-* "$home/vm-kernel"
  cp "$tree"/boot/initrd.img-* "$home/vm-initrd"
  PATH=$PATH:/usr/sbin mke2fs -q -F -t ext4 -d "$tree" "$home/vm-disk.part" 6G >/dev/null
  rm -rf "$tree"
  mv "$home/vm-disk.part" "$disk"
}

up() {
  check_requirements
  mkdir -p "$home"
  make_key
  disk=$home/vm-$(fingerprint build_disk).img
  build_disk
  ! is_running qemu || fail "the machine is already running; stop it with: $0 down"
  start_clock
  start_machine
  wait_for_boot
}

start_clock() {
  is_running clock && return
  setsid python3 "$here/clock_server.py" "127.0.0.1:$clock_port" >"$home/vm-clock.log" 2>&1 </dev/null &
  echo $! >"$home/vm-clock.pid"
  wait_for_process clock
}

start_machine() {
  started=$SECONDS
  : >"$home/vm-console.log"
  rm -f "$home/vm-volume.img"
  truncate --size 256M "$home/vm-volume.img"
  TMPDIR=$home setsid qemu-system-x86_64 -accel tcg,thread=multi -machine q35 -cpu Nehalem -smp 2 -m 1024 -nodefaults -display none \
    -kernel "$home/vm-kernel" -initrd "$home/vm-initrd" -append 'root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off' \
    -drive "file=$disk,if=virtio,format=raw,cache=unsafe" \
    -drive "file=$home/vm-volume.img,if=virtio,format=raw,cache=unsafe" -snapshot -device virtio-rng-pci -serial "file:$home/vm-console.log" \
    -netdev "user,id=net,hostfwd=tcp:127.0.0.1:$ssh_port-:22,hostfwd=udp:127.0.0.1:$time_port-:123" -device virtio-net-pci,netdev=net,romfile= \
    >"$home/vm.log" 2>&1 </dev/null &
  echo $! >"$home/vm-qemu.pid"
  wait_for_process qemu
}

wait_for_process() {
  for _ in $(seq 50); do
    is_running "$1" && return
    sleep 0.1
  done
  fail "$1 did not start: $(cat "$home/vm.log" "$home/vm-clock.log" 2>/dev/null | tail -n 1)"
}

reboot() {
  local last
  last=$(run_in_machine cat /proc/sys/kernel/random/boot_id)
  started=$SECONDS
  run_in_machine sudo systemctl reboot || true  # the connection may end before the command does
  wait_for_boot "$last"
}

wait_for_boot() {
  local last=${1:-none} until=$((SECONDS + boot_seconds)) now state
  while [ $SECONDS -lt $until ]; do
    is_running qemu && is_running clock || fail "the machine or its clock server has exited: $(cat "$home/vm.log" "$home/vm-clock.log" | tail -n 1)"
    now=$(run_in_machine cat /proc/sys/kernel/random/boot_id 2>/dev/null) || now=
    if [ -n "$now" ] && [ "$now" != "$last" ]; then
      state=$(run_in_machine timeout 60 systemctl is-system-running --wait 2>/dev/null) || true
      [ "$state" != running ] || { log "vm-1 has booted after $((SECONDS - started)) s, at 127.0.0.1:$ssh_port"; return; }
    fi
    sleep 1
  done
  fail "the machine did not boot within $boot_seconds s (${state:-no answer}): $home/vm-console.log, $home/vm.log"
}

run_in_machine() {
  ssh -i "$home/key" -p $ssh_port -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o BatchMode=yes \
    -o ConnectTimeout=5 -o ServerAliveInterval=15 -o ServerAliveCountMax=4 -n operator1@127.0.0.1 "$(printf '%q ' "$@")"
}

is_running() {
  local pid
  pid=$(cat "$home/vm-$1.pid" 2>/dev/null) && tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q "${1/clock/clock_server.py}"
}

down() {
  local process pid
  for process in qemu clock; do
    is_running $process || continue
    pid=$(cat "$home/vm-$process.pid")
    kill "$pid"
    for _ in $(seq 100); do
      is_running $process || break
      sleep 0.1
    done
    ! is_running $process || fail "$process (pid $pid) does not stop"
  done
  rm -f "$home"/vm-{qemu,clock}.pid
  log "the machine is stopped"
}

case ${1:-} in
  up) up ;;
  exec) shift; run_in_machine "$@" ;;
  reboot) reboot ;;
  down) down ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$here/$(basename "$0")"; exit 2 ;;
esac
