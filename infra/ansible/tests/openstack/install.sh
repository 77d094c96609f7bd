#!/bin/bash
# Installs a single-node OpenStack control plane (Zed packages) in a Debian 12 container that boots systemd, in about
# 110 s.
set -e
export DEBIAN_FRONTEND=noninteractive
# apt uses the sources that ../hosts.sh writes into the image.
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d
apt-get update -q >/dev/null
apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-unsafe-io mariadb-server rabbitmq-server keystone glance-api placement-api nova-api nova-conductor nova-scheduler neutron-server neutron-linuxbridge-agent cinder-api cinder-scheduler cinder-volume python3-pymysql python3-openstacksdk crudini curl </dev/null
rm /usr/sbin/policy-rc.d
