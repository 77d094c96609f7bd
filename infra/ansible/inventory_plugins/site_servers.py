"""Ansible inventory: the servers that openstack.yml has made for one site, and no other server of the cloud."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

DOCUMENTATION = """
name: site_servers
short_description: The servers that openstack.yml has made for one site
description:
  - Reads them by their metadata from the cloud C(openstack_cloud), or that of OS_CLOUD or the OS_ variables, as openstack.yml does.
  - The site is that of C(openstack_name) or C(site_name), as an extra variable or in group_vars/all.yml beside the inventory.
options:
  plugin:
    description: This plugin.
    required: true
    choices: [site_servers]
"""
Thing = Mapping[str, Any]


class InventoryModule(BaseInventoryPlugin):
    """What Ansible looks for."""

    NAME = "site_servers"

    def verify_file(self, path: str) -> bool:
        return bool(super().verify_file(path)) and path.endswith((".yml", ".yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:  # noqa: FBT001, FBT002  Ansible's own
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        beside = Path(path).parent / "group_vars" / "all.yml"
        told = {**((loader.load_from_file(str(beside)) or {}) if beside.exists() else {}), **self._vars}
        site = str(told.get("openstack_name") or told.get("site_name") or "")
        hosts = hosts_of(*_asked(told.get("openstack_cloud") or None, site), site=site)
        if not hosts:
            raise AnsibleParserError(
                f"the cloud has no server of the site {site!r}; run openstack.yml, or look at OS_CLOUD and site_name in {beside}"
            )
        for name, (groups, variables) in hosts.items():
            inventory.add_host(name)
            for group in ("servers", *groups):
                inventory.add_child(inventory.add_group(group), name)
            for key, value in variables.items():
                inventory.set_variable(name, key, value)


def hosts_of(
    servers: Iterable[Thing], volumes: Sequence[Thing], outside: Mapping[str, str], *, site: str
) -> dict[str, tuple[list[str], dict[str, Any]]]:
    """By name: the groups and the variables of each of the site's servers; `outside` are outer addresses by inner ones.

    Raises:
        AnsibleParserError: A server has no address, which is so while it is made, and where that has failed.
    """
    ours = {one["name"]: one for one in servers if (one["metadata"] or {}).get("stream_bench_site") == site}
    inner = {name: _address(one, "fixed") for name, one in ours.items()}
    for name in sorted(ours):
        if not inner[name]:
            raise AnsibleParserError(
                f"server {name}: has no IPv4 address, its status is {ours[name]['status']}; look at it in the cloud"
            )
    reached = {
        name: _address(one, "floating") or outside.get(inner[name], "") or one["access_ipv4"]
        for name, one in ours.items()
    }
    groups = {
        name: [group for group in one["metadata"].get("stream_bench_groups", "").split("+") if group]
        for name, one in ours.items()
    }
    jumps = sorted((name for name in ours if reached[name]), key=lambda name: ("load_master" not in groups[name], name))
    hosts: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for name, one in sorted(ours.items()):
        variables = {
            "ansible_host": reached[name] or inner[name],
            "site_address": inner[name],
            "openstack_id": one["id"],
        }
        if jumps and not reached[name]:
            variables["openstack_jump"] = {"id": ours[jumps[0]]["id"], "address": reached[jumps[0]]}
        attached = [
            volume["id"] for volume in volumes if one["id"] in [at["server_id"] for at in volume["attachments"]]
        ]
        if attached:
            variables["volume_devices"] = _devices(attached[0])
        hosts[name] = (groups[name], variables)
    return hosts


def _asked(cloud: str | None, site: str) -> tuple[list[Thing], list[Thing], dict[str, str]]:
    try:
        import openstack
        from keystoneauth1.exceptions import ClientException
    except ImportError as error:
        raise AnsibleParserError(
            "openstacksdk is not installed where Ansible is; run: pip install openstacksdk"
        ) from error
    try:
        at = openstack.connect(cloud=cloud)
        servers = [one.to_dict(computed=False) for one in at.compute.servers()]
        volumes = [one.to_dict(computed=False) for one in at.block_storage.volumes()]
        addresses = at.network.ips(description=f"stream-bench site {site}")
        outside = {str(one.fixed_ip_address): str(one.floating_ip_address) for one in addresses}
    except (openstack.exceptions.SDKException, ClientException) as error:
        raise AnsibleParserError(
            f"the cloud {cloud or 'of OS_CLOUD or the OS_ variables'} does not answer: {error}"
        ) from error
    return servers, [one for one in volumes if (one["metadata"] or {}).get("stream_bench_site") == site], outside


def _address(server: Thing, kind: str) -> str:
    """A server's first IPv4 address of a kind, fixed or floating; "" when it has none."""
    found = [one for network in (server["addresses"] or {}).values() for one in network]
    return next((str(one["addr"]) for one in found if one["version"] == 4 and one["OS-EXT-IPS:type"] == kind), "")


def _devices(volume: str) -> list[str]:
    """What a volume is called in the server that it is attached to: by virtio, by SCSI, by VMware."""
    by_id = "/dev/disk/by-id"
    return [
        f"{by_id}/virtio-{volume[:20]}",
        f"{by_id}/scsi-0QEMU_QEMU_HARDDISK_{volume}",
        f"{by_id}/wwn-0x{volume.replace('-', '')}",
    ]
