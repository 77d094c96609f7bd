"""Ansible inventory plugin: the servers that openstack.yml created for one site, and no other servers of the cloud."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

DOCUMENTATION = """
name: site_servers
short_description: The servers that openstack.yml created for one site
description:
  - Finds the servers by their metadata in the cloud C(openstack_cloud).
  - Without C(openstack_cloud), OS_CLOUD or the OS_ variables select the cloud.
  - The name of the site is C(openstack_name) or C(site_name).
  - It is an extra variable, or a variable in group_vars/all.yml next to the inventory.
options:
  plugin:
    description: This plugin.
    required: true
    choices: [site_servers]
"""
Resource = Mapping[str, Any]


class InventoryModule(BaseInventoryPlugin):
    """The plugin of this file, as Ansible loads it."""

    NAME = "site_servers"

    def verify_file(self, path: str) -> bool:
        """Return whether the file may be an inventory of this plugin: its name ends in .yml or .yaml."""
        return bool(super().verify_file(path)) and path.endswith((".yml", ".yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:  # noqa: FBT001, FBT002  Ansible's own
        """Add the site's servers with their groups and variables to Ansible's inventory.

        Raises:
            AnsibleParserError: The cloud does not answer, or has no server of the site.
        """
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        group_vars = Path(path).parent / "group_vars" / "all.yml"
        variables = {**((loader.load_from_file(str(group_vars)) or {}) if group_vars.exists() else {}), **self._vars}
        site = str(variables.get("openstack_name") or variables.get("site_name") or "")
        hosts = build_hosts(*_query_cloud(variables.get("openstack_cloud") or None, site), site=site)
        if not hosts:
            raise AnsibleParserError(
                f"the cloud has no server of the site {site!r}; run openstack.yml, or check OS_CLOUD and site_name in"
                f" {group_vars}"
            )
        for name, (groups, host_variables) in hosts.items():
            inventory.add_host(name)
            for group in ("servers", *groups):
                inventory.add_child(inventory.add_group(group), name)
            for key, value in host_variables.items():
                inventory.set_variable(name, key, value)


def build_hosts(
    servers: Iterable[Resource], volumes: Sequence[Resource], floating_ips: Mapping[str, str], *, site: str
) -> dict[str, tuple[list[str], dict[str, Any]]]:
    """Return the groups and the variables of each server of the site, by server name.

    Args:
        servers: All servers of the cloud.
        volumes: The site's volumes.
        floating_ips: Floating IP addresses by fixed address.
        site: Name of the site.

    Raises:
        AnsibleParserError: A server has no address: it is still being created, or its creation failed.
    """
    by_name = {one["name"]: one for one in servers if (one["metadata"] or {}).get("stream_bench_site") == site}
    fixed = {name: _address(server, "fixed") for name, server in by_name.items()}
    for name in sorted(by_name):
        if not fixed[name]:
            raise AnsibleParserError(
                f"server {name}: has no address, its status is {by_name[name]['status']}; check it in the cloud"
            )
    external = {
        name: _address(server, "floating") or floating_ips.get(fixed[name], "") or server["access_ipv4"]
        for name, server in by_name.items()
    }
    groups = {
        name: [group for group in server["metadata"].get("stream_bench_groups", "").split("+") if group]
        for name, server in by_name.items()
    }
    reachable = (name for name in by_name if external[name])
    jump_hosts = sorted(reachable, key=lambda name: ("load_master" not in groups[name], name))
    hosts: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for name, server in sorted(by_name.items()):
        variables = {
            "ansible_host": external[name] or fixed[name],
            "site_address": fixed[name],
            "openstack_id": server["id"],
        }
        if jump_hosts and not external[name]:
            variables["openstack_jump"] = {"id": by_name[jump_hosts[0]]["id"], "address": external[jump_hosts[0]]}
        attached = [
            volume["id"]
            for volume in volumes
            if server["id"] in [attachment["server_id"] for attachment in volume["attachments"]]
        ]
        if attached:
            variables["volume_devices"] = _device_paths(attached[0])
        hosts[name] = (groups[name], variables)
    return hosts


def has_volumes(servers: Iterable[Resource], site: str) -> bool:
    """Return whether a server of the site has a volume; if none has, the cloud may have no volume service."""
    return any(one["attached_volumes"] for one in servers if (one["metadata"] or {}).get("stream_bench_site") == site)


def _query_cloud(cloud: str | None, site: str) -> tuple[list[Resource], list[Resource], dict[str, str]]:
    """Return all servers, the site's volumes, and the site's floating IP addresses by fixed address."""
    try:
        import openstack
        from keystoneauth1.exceptions import ClientException
    except ImportError as error:
        raise AnsibleParserError(
            "openstacksdk is not installed in Ansible's environment; run: pip install openstacksdk"
        ) from error
    try:
        connection = openstack.connect(cloud=cloud)
        servers = [server.to_dict(computed=False) for server in connection.compute.servers()]
        volumes = []
        if has_volumes(servers, site):
            volumes = [volume.to_dict(computed=False) for volume in connection.block_storage.volumes()]
        addresses = connection.network.ips(description=f"stream-bench site {site}")
        floating_ips = {str(address.fixed_ip_address): str(address.floating_ip_address) for address in addresses}
    except (openstack.exceptions.SDKException, ClientException) as error:
        raise AnsibleParserError(
            f"the cloud {cloud or 'of OS_CLOUD or the OS_ variables'} does not answer: {error}"
        ) from error
    site_volumes = [volume for volume in volumes if (volume["metadata"] or {}).get("stream_bench_site") == site]
    return servers, site_volumes, floating_ips


def _address(server: Resource, kind: str) -> str:
    """Return a server's first address of a kind (fixed or floating), IPv4 before IPv6, or an empty text."""
    addresses = [one for network in (server["addresses"] or {}).values() for one in network]
    of_kind = [one for one in addresses if one["OS-EXT-IPS:type"] == kind]
    return next((str(one["addr"]) for one in sorted(of_kind, key=lambda one: int(one["version"]))), "")


def _device_paths(volume_id: str) -> list[str]:
    """Return the device paths that a volume may have in its server: with virtio, SCSI or VMware."""
    by_id = "/dev/disk/by-id"
    return [
        f"{by_id}/virtio-{volume_id[:20]}",
        f"{by_id}/scsi-0QEMU_QEMU_HARDDISK_{volume_id}",
        f"{by_id}/wwn-0x{volume_id.replace('-', '')}",
    ]
