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
    names = []
    for name in LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError:
            names.append(name)
    return names


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


def complaint(names: list[str]) -> str:
    packages = " ".join(LIBRARIES[name] for name in names)
    if shutil.which("apt-get"):
        return (
            f"system-deps: Mooncake needs {', '.join(names)}. This user may not install them. "
            f"Run as root: apt-get install {packages}"
        )
    return (
        f"system-deps: Mooncake needs {', '.join(names)}. Install the packages of this system that "
        f"hold them (on Debian and Ubuntu: {packages})"
    )


def main() -> int:
    names = missing()
    if not names:
        return 0
    prefix = privilege() if shutil.which("apt-get") else None
    if prefix is None:
        print(complaint(names), file=sys.stderr)
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
    # A fresh machine has no package lists; elsewhere the update may fail and the install still work.
    run([*prefix, "apt-get", "update", "--quiet"])
    if not run(install) or (names := missing()):
        print(complaint(names), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
