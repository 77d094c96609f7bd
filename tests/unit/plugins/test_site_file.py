"""Site files with sections of plugins."""

import subprocess
import sys
from pathlib import Path

READ_WITHOUT_CLIENT = """
import sys
from pathlib import Path
sys.modules["confluent_kafka"] = None
from bench.errors import UsageError
from bench.plugins.site_file import read_site_file
try:
    read_site_file(Path(sys.argv[1]))
except UsageError as mistake:
    print(mistake)
"""


def test_the_section_of_an_incomplete_plugin_is_refused_with_the_missing_package(tmp_path: Path) -> None:
    """One line says that the section is unknown, and one which package is missing."""
    (tmp_path / "site.yaml").write_text("kafka: {bootstrap: 'h:9092'}\n")
    command = [sys.executable, "-c", READ_WITHOUT_CLIENT, str(tmp_path / "site.yaml")]
    unknown, missing = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert ":1: kafka: found an unknown key" in unknown
    assert "the source 'kafka' needs the package 'confluent_kafka', which is not installed" in missing
