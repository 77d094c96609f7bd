"""Script that prints the names of all resources in the cloud of the OS_ variables, by kind, as JSON."""

import json

import openstack


def main() -> None:
    """Print the names of the resources by kind; resources named default exist in every project and are left out."""
    cloud = openstack.connect()
    resources = {
        "servers": cloud.compute.servers(),
        "volumes": cloud.block_storage.volumes() if cloud.has_service("block-storage") else [],
        "keys": cloud.compute.keypairs(),
        "groups of servers": cloud.compute.server_groups(),
        "networks": cloud.network.networks(),
        "routers": cloud.network.routers(),
        "security groups": cloud.network.security_groups(),
        "addresses": cloud.network.ips(),
    }
    names = {kind: sorted({resource.name for resource in of_kind} - {"default"}) for kind, of_kind in resources.items()}
    print(json.dumps(names))


if __name__ == "__main__":
    main()
