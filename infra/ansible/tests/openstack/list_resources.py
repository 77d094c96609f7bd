"""Says what stands in the cloud of the OS_ variables: one JSON text, names by kind."""

import json

import openstack


def main() -> None:
    """By kind the names of what there is, of an address itself; what every project has is left out."""
    cloud = openstack.connect()
    found = {
        "servers": cloud.compute.servers(),
        "volumes": cloud.block_storage.volumes(),
        "keys": cloud.compute.keypairs(),
        "groups of servers": cloud.compute.server_groups(),
        "networks": cloud.network.networks(),
        "routers": cloud.network.routers(),
        "security groups": cloud.network.security_groups(),
        "addresses": cloud.network.ips(),
    }
    print(
        json.dumps(
            {kind: sorted({one.name for one in all_of_them} - {"default"}) for kind, all_of_them in found.items()}
        )
    )


if __name__ == "__main__":
    main()
