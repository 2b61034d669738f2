"""Parts of a virtual environment for another machine: `requirements`, a line each, or `commands` of a folder."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import tomllib

NEEDED_TESTS = ("pytest", "jsonschema")
COMMAND = "#!/ranklens/.venv/bin/python\nimport sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"


def main() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    if sys.argv[1] == "requirements":
        extras = project["optional-dependencies"]
        tests = [line for line in extras["test"] if line.startswith(NEEDED_TESTS)]
        print("\n".join([*project["dependencies"], *extras["watch"], *extras["audit"], *tests]))
        return
    for name, target in project["scripts"].items():
        module, _, function = target.partition(":")
        place = Path(sys.argv[2]) / "bin" / name
        place.write_text(COMMAND.format(module=module, function=function))
        place.chmod(place.stat().st_mode | stat.S_IXUSR)


main()
