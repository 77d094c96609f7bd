#!/usr/bin/python
"""Ansible module that reads what a cloud offers to a project: flavors, images, networks, zones and the quota left."""

from __future__ import annotations

import math
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: cloud_offer
short_description: Reads what an OpenStack cloud offers to a project
description:
  - Reads flavors, images, networks, availability zones and the quota that is left. Changes nothing.
options:
  cloud:
    description: Name of a cloud in clouds.yaml. Without it, the OS_ variables select the cloud.
    type: str
  volumes:
    description: Whether to ask the volume service for its zones and quota.
    type: bool
    default: false
  services_only:
    description: Whether to read only which services the cloud has.
    type: bool
    default: false
author: stream-bench
"""
EXAMPLES = """
- name: Read what the cloud offers
  cloud_offer: {cloud: mycloud, volumes: true}
"""
RETURN = """
offer:
  description:
    - has_volumes tells whether the cloud has a volume service.
    - flavors, images and networks are lists; zones and volume_zones are names of availability zones.
    - left has the quota that is left, by kind of resource; a kind without a limit is left out.
    - group_members is the largest number of servers in a server group.
  type: dict
  returned: always
"""

GIB = 2**30


def main() -> None:
    """Return the offer of the cloud."""
    switch = {"type": "bool", "default": False}
    module = AnsibleModule(
        {"cloud": {"type": "str"}, "volumes": switch, "services_only": switch}, supports_check_mode=True
    )
    given = module.params
    try:
        import openstack
        from keystoneauth1.exceptions import ClientException
    except ImportError:
        module.fail_json(msg="openstacksdk is not installed in Ansible's environment; run: pip install openstacksdk")
    try:
        connection = openstack.connect(cloud=given["cloud"])
        connection.authorize()
        offer = {"has_volumes": connection.has_service("block-storage")}
        if not given["services_only"]:
            offer |= read_offer(connection)
            offer["left"], offer["group_members"] = read_compute_quota(connection)
            offer["volume_zones"] = []
            try:
                offer["left"] |= read_network_quota(connection)
            except openstack.exceptions.HttpException as error:
                module.warn(f"the quota of networks and floating IP addresses cannot be read: {error}")
        if given["volumes"] and offer["has_volumes"] and not given["services_only"]:
            offer["volume_zones"] = [zone.name for zone in connection.block_storage.availability_zones()]
            offer["left"] |= read_volume_quota(connection)
    except (openstack.exceptions.SDKException, ClientException) as error:
        module.fail_json(msg=f"the cloud {given['cloud'] or 'of the OS_ variables'} does not answer: {error}")
    module.exit_json(changed=False, offer=offer)


def read_offer(connection: Any) -> dict[str, Any]:
    """Return the flavors, images, networks and availability zones of a cloud."""
    cidrs: dict[str, list[str]] = {}
    for subnet in connection.network.subnets():
        cidrs.setdefault(subnet.network_id, []).append(subnet.cidr)
    return {
        "flavors": [
            {"id": one.id, "name": one.name, "vcpus": one.vcpus, "ram_mb": one.ram, "disk_gb": one.disk}
            for one in connection.compute.flavors()
        ],
        "images": [
            {"id": one.id, "name": one.name, "disk_gb": image_disk_gb(one)} for one in connection.image.images()
        ],
        "networks": [
            {"id": one.id, "name": one.name, "external": bool(one.is_router_external), "cidrs": cidrs.get(one.id, [])}
            for one in connection.network.networks()
        ],
        "zones": [one.name for one in connection.compute.availability_zones() if one.state.get("available")],
    }


def image_disk_gb(image: Any) -> int:
    """Return the size in GB of the smallest disk that holds an image, as far as the cloud knows it."""
    content = image.virtual_size or (image.size if image.disk_format == "raw" else 0) or 0
    return max(image.min_disk or 0, math.ceil(content / GIB))


def read_compute_quota(connection: Any) -> tuple[dict[str, int], int]:
    """Return the quota that is left of the compute service, and the largest number of servers in a server group."""
    limits = connection.compute.get_limits().absolute
    left = subtract(
        instances=(limits.instances, limits.instances_used),
        cores=(limits.total_cores, limits.total_cores_used),
        ram_mb=(limits.total_ram, limits.total_ram_used),
        server_groups=(limits.server_groups, limits.server_groups_used),
    )
    return left, -1 if limits.server_group_members is None else limits.server_group_members


def read_volume_quota(connection: Any) -> dict[str, int]:
    """Return the quota that is left of the volume service."""
    limits = connection.block_storage.get_limits().absolute
    return subtract(
        volumes=(limits.max_total_volumes, limits.total_volumes_used),
        gigabytes=(limits.max_total_volume_gigabytes, limits.total_gigabytes_used),
    )


def read_network_quota(connection: Any) -> dict[str, int]:
    """Return the quota that is left of the network service."""
    quota = connection.network.get_quota(connection.current_project_id, details=True)
    limits = {}
    for name in ("floating_ips", "networks", "routers", "security_groups"):
        one = getattr(quota, name) or {}
        limits[name] = (one.get("limit"), one.get("used", 0) + one.get("reserved", 0))
    return subtract(**limits)


def subtract(**limits: tuple[int | None, int | None]) -> dict[str, int]:
    """Return each limit less what is used; a limit that is unknown or negative, which is none, is left out."""
    return {name: limit - (used or 0) for name, (limit, used) in limits.items() if limit is not None and limit >= 0}


if __name__ == "__main__":
    main()
