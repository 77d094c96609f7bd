"""The folder through which the source `files` serves frameworks."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench.config.site import Site
from bench.errors import PluginError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from producers.files.site import FilesSite


def on_site(folder: Path, data: Path) -> RunEnvironment:
    """Return the environment of a run whose site has that shared folder."""
    site = Site(sections={"files": FilesSite(str(folder))})
    return cast("RunEnvironment", SimpleNamespace(site=site, data=data))


def test_files_lie_in_the_sites_folder(env: RunEnvironment, tmp_path: Path) -> None:
    """Each cell has a folder of its own in it until it is closed; a folder that is not mounted is not made."""
    cell, source = Cell("spark", "files", 1000, 0.0), registry.make_source("files", {"files": {"folder": "/dev/shm"}})
    endpoint = source.open(cell, on_site(tmp_path, env.data))
    assert Path(endpoint.address).parent.parent == tmp_path
    source.close()
    assert not list(tmp_path.iterdir())
    with pytest.raises(PluginError, match="unmounted: No such file"):
        registry.make_source("files", {}).open(cell, on_site(tmp_path / "unmounted", env.data))
