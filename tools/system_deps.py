# SPDX-License-Identifier: Apache-2.0
"""See that what the checkout needs of the system is there.

`system_deps.py` sees to the shared libraries that Mooncake's wheel links against, and
`system_deps.py browser` to a Chromium for the tests of HTML pages.

Where something is missing, Debian's package is installed if this user may (root, or sudo that asks
for no password). Everywhere else one message says what to install. A missing library makes the exit
status 1; without a browser the tests that need one are skipped and say so.
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

# Any of these will do, and Debian has the first.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


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
    if sys.argv[1:] == ["browser"]:
        return see_to_browser()
    if sys.argv[1:]:
        print("usage: system_deps.py [browser]", file=sys.stderr)
        return 2
    return see_to_libraries()


def see_to_libraries() -> int:
    names = missing()
    if not names:
        return 0
    prefix = privilege() if shutil.which("apt-get") else None
    if prefix is None:
        print(f"system-deps: {needs(names)} {advice(names)}", file=sys.stderr)
        return 1
    if not install(prefix, [LIBRARIES[name] for name in names]) or missing():
        print(f"system-deps: the install failed. {needs(names)}", file=sys.stderr)
        return 1
    return 0


def see_to_browser() -> int:
    if has_browser():
        return 0
    prefix = privilege() if shutil.which("apt-get") else None
    if prefix is None or not install(prefix, ["chromium"]) or not has_browser():
        print(
            "system-deps: no Chromium is here, and none could be installed (on Debian: chromium). "
            "The tests that open a page are skipped.",
            file=sys.stderr,
        )
    return 0


def has_browser() -> bool:
    return any(map(shutil.which, BROWSERS))


def install(prefix: list[str], packages: list[str]) -> bool:
    command = [
        *prefix,
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "install",
        "--yes",
        "--no-install-recommends",
        *packages,
    ]
    print(f"system-deps: {shlex.join(command)}", flush=True)
    # A fresh machine has no package lists. Where the update fails the install may still work.
    run([*prefix, "apt-get", "update", "--quiet"])
    return run(command)


if __name__ == "__main__":
    sys.exit(main())
