"""The reaper depends on the standard library only."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
IMPORTED = """
import sys; sys.path.append(sys.argv[1]); import bench.system.reaper
print(*{name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names - {"__main__"})
"""


def test_the_reaper_imports_the_standard_library_only() -> None:
    """Without site-packages it is imported as the Supervisor starts it, and only modules of bench come with it."""
    command = [sys.executable, "-I", "-S", "-c", IMPORTED, str(ROOT)]
    imported = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert imported.split() == ["bench"]
