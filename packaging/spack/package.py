# A recipe for Spack (https://spack.readthedocs.io), which builds the checkout that it stands in: link this folder into
# a repository of yours as packages/ranklens, then `spack install ranklens`. For what is not committed yet add
# `dev_path=CHECKOUT`.

from pathlib import Path

from spack.package import *


class Ranklens(PythonPackage):
    """Debuggers and inspectors for MPI programs whose ranks are virtualized: Adaptive MPI, SimGrid's SMPI,
    Process-in-Process, and an embedded runtime."""

    git = f"file://{Path(__file__).resolve().parents[2]}"

    license("BSD-2-Clause")

    version("main", branch="main")

    variant("watch", default=True, description="inspector watch, a live view in the terminal")
    variant("runtime", default=True, description="rankrun, and the registry library (pkg-config rank-debug)")

    depends_on("c", type="build", when="+runtime")
    depends_on("cxx", type="build", when="+runtime")
    depends_on("fortran", type="build", when="+runtime")
    depends_on("gmake", type="build", when="+runtime")
    depends_on("boost", type="build", when="+runtime")  # headers alone

    depends_on("python@3.9:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-pyelftools@0.29:", type=("build", "run"))
    depends_on("py-textual@1:", type=("build", "run"), when="+watch")
    depends_on("elfutils", type="run")  # libdw, which reads debug information

    conflicts("platform=darwin")
    conflicts("platform=windows")

    @run_after("install", when="+runtime")
    def install_runtime(self):
        make("-C", "runtime-hooks", "install", f"PREFIX={self.prefix}")

    def setup_run_environment(self, env):
        env.prepend_path("LD_LIBRARY_PATH", self.spec["elfutils"].prefix.lib)
