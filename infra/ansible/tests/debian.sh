# Functions that hosts.sh and vm.sh share; both source this file. $home must be set: the folder of the images and of
# the SSH key.

base_packages=systemd,systemd-sysv,dbus,python3,python3-apt,openssh-server,sudo,iproute2,ca-certificates,procps

make_key() { [ -e "$home/key" ] || ssh-keygen -q -t ed25519 -N '' -C stream-bench-test -f "$home/key"; }

# debian TARGET MMDEBSTRAP-OPTION...: builds a Debian system with the apt sources and the CA certificates of this
# machine, and with the account operator1, which may log in with the key and use sudo
debian() {
  local target=$1
  shift
  mmdebstrap --quiet --variant=minbase --include="$base_packages" \
    --customize-hook='mkdir -p "$1/usr/local/share/ca-certificates" && cp -L /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null || true' \
    --customize-hook='chroot "$1" update-ca-certificates >/dev/null 2>&1' \
    --customize-hook='rm -rf "$1"/etc/apt/sources.list* && cp -a /etc/apt/sources.list.d "$1/etc/apt/" && cp -a /etc/apt/apt.conf.d/99* "$1/etc/apt/apt.conf.d/" 2>/dev/null || true' \
    --customize-hook='find "$1/etc/apt/sources.list.d" -type f ! -name "debian*" -delete; cp /etc/pip.conf "$1/etc/pip.conf" 2>/dev/null || true' \
    --customize-hook='chroot "$1" useradd -m -s /bin/bash operator1' \
    --customize-hook='echo "operator1 ALL=(ALL) NOPASSWD: ALL" >"$1/etc/sudoers.d/operator1"' \
    --customize-hook="install -d -m 700 -o 1000 -g 1000 \"\$1/home/operator1/.ssh\" && install -m 600 -o 1000 -g 1000 '$home/key.pub' \"\$1/home/operator1/.ssh/authorized_keys\"" \
    "$@" bookworm "$target"
}

# fingerprint FUNCTION: prints twelve characters that change when the code of FUNCTION, the packages or the key change
fingerprint() { (echo "$base_packages ${packages:-}"; declare -f debian "$1"; cat "$home/key.pub") | sha256sum | cut -c1-12; }
