"""Script that fills a new test cloud: image, flavors, external network, and resources of another site."""

import io

import openstack


def main() -> None:
    """Create the missing resources in the cloud of the OS_ variables."""
    cloud = openstack.connect()
    if cloud.get_image("debian-12") is None:
        cloud.create_image(
            "debian-12", data=io.BytesIO(b"no real image").read(), disk_format="raw", container_format="bare", wait=True
        )
    for name, cores, memory, disk in (("m1.medium", 1, 512, 1), ("m1.large", 2, 1024, 1), ("m1.diskless", 2, 1024, 0)):
        if cloud.get_flavor(name) is None:
            cloud.create_flavor(name, memory, cores, disk)
    if cloud.get_network("public") is None:
        external = cloud.create_network(
            "public", external=True, provider={"network_type": "flat", "physical_network": "public"}
        )
        cloud.create_subnet(external.id, cidr="203.0.113.0/24", subnet_name="public", enable_dhcp=False)
    if cloud.get_network("other-site") is None:
        other = cloud.create_network("other-site")
        cloud.create_subnet(other.id, cidr="10.9.0.0/24", subnet_name="other-site")
        cloud.create_security_group("other-site", "security group of another site")
        cloud.create_server(
            "cloud-test-other",
            image="debian-12",
            flavor="m1.medium",
            network="other-site",
            auto_ip=False,
            wait=True,
            timeout=300,
        )
        cloud.network.create_ip(floating_network_id=cloud.get_network("public").id, floating_ip_address="203.0.113.200")


if __name__ == "__main__":
    main()
