"""The folder through which the source `files` serves frameworks."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench.config.site import LoadHosts, Site
from bench.errors import PluginError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from producers.files.site import FilesSite


def on_site(files: FilesSite, data: Path, load: LoadHosts | None = None) -> RunEnvironment:
    """Return the environment of a run whose site has that shared folder, and those load hosts."""
    site = Site(load=load, sections={"files": files})
    return cast("RunEnvironment", SimpleNamespace(site=site, data=data))


def test_load_workers_may_write_into_a_cells_folder(env: RunEnvironment, tmp_path: Path) -> None:
    """They run as somebody else; without them only the harness may."""
    cell, source = Cell("python", "files", 1000, 0.0), registry.make_source("files", {})
    for load, mode in ((None, 0o755), (LoadHosts("192.0.2.9:5557", 2), 0o777)):
        files = FilesSite(str(tmp_path), load_hosts=True)
        folder = Path(source.open(cell, on_site(files, env.data, load)).address)
        assert {path.stat().st_mode & 0o777 for path in folder.parent.iterdir()} == {mode}
        source.close()


def test_files_lie_in_the_sites_folder(env: RunEnvironment, tmp_path: Path) -> None:
    """Each cell has a folder of its own in it until it is closed; a folder that is not mounted is not made."""
    cell, source = Cell("spark", "files", 1000, 0.0), registry.make_source("files", {"files": {"folder": "/dev/shm"}})
    endpoint = source.open(cell, on_site(FilesSite(str(tmp_path)), env.data))
    assert Path(endpoint.address).parent.parent == tmp_path
    source.close()
    assert not list(tmp_path.iterdir())
    with pytest.raises(PluginError, match="unmounted: No such file"):
        registry.make_source("files", {}).open(cell, on_site(FilesSite(str(tmp_path / "unmounted")), env.data))
