"""The light install: importing the package pulls in neither torch nor scipy."""

from __future__ import annotations

import subprocess
import sys


def test_importing_exits_is_light():
    code = (
        "import sys, de3bert.exits, de3bert.exits.trace_file;"
        "print(*sorted({'torch', 'transformers', 'scipy'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stdout.strip()) == (0, ""), result.stderr
