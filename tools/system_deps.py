# SPDX-License-Identifier: Apache-2.0
"""See that the shared libraries Mooncake's wheel links against are there.

Where one is missing, Debian's package is installed if this user may (root, or sudo that asks for
no password). Everywhere else one message says what to install, and the exit status is 1.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import sys

LIBRARIES = {
    "libibverbs.so.1": "libibverbs1",
    "libnuma.so.1": "libnuma1",
    "libcurl.so.4": "libcurl4",
}


def missing() -> list[str]:
    """The libraries the loader does not find: asked of the loader itself, not of a package list."""
    return [name for name in LIBRARIES if not loads(name)]


def loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def privilege() -> list[str] | None:
    """The command prefix that installs without a question, or None where there is none."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and run(["sudo", "-n", "true"], quiet=True):
        return ["sudo", "-n"]
    return None


def run(command: list[str], *, quiet: bool = False) -> bool:
    output = subprocess.DEVNULL if quiet else None
    # Standard input is closed: a question would stop an unattended run.
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
    )
    return done.returncode == 0


def needs(names: list[str]) -> str:
    packages = " ".join(LIBRARIES[name] for name in names)
    return f"Mooncake needs {', '.join(names)} (on Debian and Ubuntu: {packages})."


def advice(names: list[str]) -> str:
    if shutil.which("apt-get"):
        packages = " ".join(LIBRARIES[name] for name in names)
        return f"This user may not install. Run as root: apt-get install {packages}"
    return "Install the packages of this system that hold them."


def main() -> int:
    names = missing()
    if not names:
        return 0
    prefix = privilege() if shutil.which("apt-get") else None
    if prefix is None:
        print(f"system-deps: {needs(names)} {advice(names)}", file=sys.stderr)
        return 1
    packages = [LIBRARIES[name] for name in names]
    install = [
        *prefix,
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "install",
        "--yes",
        "--no-install-recommends",
        *packages,
    ]
    print(f"system-deps: {shlex.join(install)}", flush=True)
    # A fresh machine has no package lists. Where the update fails the install may still work.
    run([*prefix, "apt-get", "update", "--quiet"])
    if not run(install) or missing():
        print(f"system-deps: the install failed. {needs(names)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
