#!/usr/bin/env bash
# A host to test on that has a kernel of its own, for what containers cannot do; an emulated machine, which needs no KVM.
#
#   vm.sh up               builds the disk where it is missing, starts the machine, waits until it has booted
#   vm.sh exec COMMAND...  runs a command in it, as operator1
#   vm.sh reboot           starts it anew and waits until it has booted
#   vm.sh down             ends it; what it had written is gone
#
# It has a second disk of 256 MB, /dev/vdb, with nothing on it.
#
# Everything lies in $STREAM_BENCH_HOSTS (~/.cache/stream-bench/hosts): disk, kernel, key, console. Only this machine reaches it, by
# 127.0.0.1: SSH at 22099 (tcp), its time at 22123 (udp). It sees this machine as 10.0.2.2, with its clock at 10.0.2.2:22124.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${STREAM_BENCH_HOSTS:-${XDG_CACHE_HOME:-$HOME/.cache}/stream-bench/hosts}
packages=linux-image-cloud-amd64,udev
ssh_port=22099 time_port=22123 clock_port=22124
boot_seconds=240
. "$here/debian.sh"

say() { printf 'vm: %s\n' "$*" >&2; }
stop() { printf 'vm: %s\n' "$*" >&2; exit 3; }

needs() {
  local missing=()
  for command in qemu-system-x86_64 mmdebstrap mke2fs ssh ssh-keygen; do
    PATH=$PATH:/usr/sbin command -v "$command" >/dev/null || missing+=("$command")
  done
  [ ${#missing[@]} = 0 ] || stop "missing: ${missing[*]}; run: apt-get install -y qemu-system-x86 mmdebstrap e2fsprogs openssh-client"
  [ "$(id -u)" = 0 ] || stop "the disk is made with root's files on it: run as root"
}

disk() {
  [ -e "$home/vm-$mark.img" ] && return
  say "building the disk (about a minute)"
  local tree=$home/vm-tree
  rm -rf "$tree" "$home"/vm-*.img
  debian "$tree" --include="$packages" --dpkgopt='path-exclude=/usr/share/doc/*' \
    --customize-hook='echo "Acquire::Languages \"none\";" >"$1/etc/apt/apt.conf.d/99languages"' \
    --customize-hook='echo vm-1 >"$1/etc/hostname"; printf "127.0.0.1 localhost\n127.0.1.1 vm-1\n" >"$1/etc/hosts"' \
    --customize-hook='printf "[Match]\nName=eth0\n[Network]\nDHCP=ipv4\n" >"$1/etc/systemd/network/eth0.network"; chroot "$1" systemctl --quiet enable systemd-networkd' \
    --customize-hook='rm -f "$1/etc/resolv.conf"; echo nameserver 10.0.2.3 >"$1/etc/resolv.conf"'
  touch -d 2000-01-01 "$tree/var/lib/apt/lists"  # a fresh host's lists of packages are empty, and old
  cp "$tree"/boot/vmlinuz-* "$home/vm-kernel"
  cp "$tree"/boot/initrd.img-* "$home/vm-initrd"
  PATH=$PATH:/usr/sbin mke2fs -q -F -t ext4 -d "$tree" "$home/vm-disk.part" 6G >/dev/null
  rm -rf "$tree"
  mv "$home/vm-disk.part" "$home/vm-$mark.img"
}

up() {
  needs
  mkdir -p "$home"
  make_key
  mark=$(recipe disk)
  disk
  ! alive qemu || stop "the machine runs already; end it: $0 down"
  clock
  machine
  booted
}

clock() {
  alive clock && return
  setsid python3 "$here/clock_server.py" "127.0.0.1:$clock_port" >"$home/vm-clock.log" 2>&1 </dev/null &
  echo $! >"$home/vm-clock.pid"
  runs clock
}

machine() {
  started=$SECONDS
  : >"$home/vm-console.log"
  rm -f "$home/vm-volume.img"
  truncate --size 256M "$home/vm-volume.img"
  TMPDIR=$home setsid qemu-system-x86_64 -accel tcg,thread=multi -machine q35 -cpu Nehalem -smp 2 -m 1024 -nodefaults -display none \
    -kernel "$home/vm-kernel" -initrd "$home/vm-initrd" -append 'root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off' \
    -drive "file=$home/vm-$mark.img,if=virtio,format=raw,cache=unsafe" \
    -drive "file=$home/vm-volume.img,if=virtio,format=raw,cache=unsafe" -snapshot -device virtio-rng-pci -serial "file:$home/vm-console.log" \
    -netdev "user,id=net,hostfwd=tcp:127.0.0.1:$ssh_port-:22,hostfwd=udp:127.0.0.1:$time_port-:123" -device virtio-net-pci,netdev=net,romfile= \
    >"$home/vm.log" 2>&1 </dev/null &
  echo $! >"$home/vm-qemu.pid"
  runs qemu
}

runs() {
  for _ in $(seq 50); do
    alive "$1" && return
    sleep 0.1
  done
  stop "$1 did not start: $(cat "$home/vm.log" "$home/vm-clock.log" 2>/dev/null | tail -n 1)"
}

reboot() {
  local last
  last=$(inside cat /proc/sys/kernel/random/boot_id)
  started=$SECONDS
  inside sudo systemctl reboot || true  # the connection may end before the command does
  booted "$last"
}

booted() {
  local last=${1:-none} until=$((SECONDS + boot_seconds)) now state
  while [ $SECONDS -lt $until ]; do
    alive qemu && alive clock || stop "the machine or its clock has ended: $(cat "$home/vm.log" "$home/vm-clock.log" | tail -n 1)"
    now=$(inside cat /proc/sys/kernel/random/boot_id 2>/dev/null) || now=
    if [ -n "$now" ] && [ "$now" != "$last" ]; then
      state=$(inside timeout 60 systemctl is-system-running --wait 2>/dev/null) || true
      [ "$state" != running ] || { say "vm-1 has booted after $((SECONDS - started)) s, at 127.0.0.1:$ssh_port"; return; }
    fi
    sleep 1
  done
  stop "it has not booted within $boot_seconds s (${state:-no answer}): $home/vm-console.log, $home/vm.log"
}

inside() {
  ssh -i "$home/key" -p $ssh_port -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o BatchMode=yes \
    -o ConnectTimeout=5 -o ServerAliveInterval=15 -o ServerAliveCountMax=4 -n operator1@127.0.0.1 "$(printf '%q ' "$@")"
}

alive() {
  local pid
  pid=$(cat "$home/vm-$1.pid" 2>/dev/null) && tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q "${1/clock/clock_server.py}"
}

down() {
  local part pid
  for part in qemu clock; do
    alive $part || continue
    pid=$(cat "$home/vm-$part.pid")
    kill "$pid"
    for _ in $(seq 100); do
      alive $part || break
      sleep 0.1
    done
    ! alive $part || stop "$part (pid $pid) does not end"
  done
  rm -f "$home"/vm-{qemu,clock}.pid
  say "nothing runs any more"
}

case ${1:-} in
  up) up ;;
  exec) shift; inside "$@" ;;
  reboot) reboot ;;
  down) down ;;
  *) sed -n '2,12s/^# \{0,1\}//p' "$here/$(basename "$0")"; exit 2 ;;
esac
