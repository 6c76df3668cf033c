"""Write the lock files from what the environment holds, and check that they install elsewhere.

`python .ci/lock.py write` splits the installed versions in two: requirements.lock has what the
package and the book need, requirements-test.lock what the tests and the linters add. It writes
environment.yml too. `make lock` runs it.

`python .ci/lock.py check` asks the package index, page by page, whether every pin has a wheel for
each supported system and Python. It downloads no wheel and installs nothing. Run it when a lock
has changed. Packages that another system alone needs, such as colorama, are in no lock; pip takes
their newest versions there, and this check does not see them.
"""

from __future__ import annotations

import html
import re
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from itertools import chain, product
from pathlib import Path

from packaging import tags
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
BOOK, TEST = ROOT / "requirements.lock", ROOT / "requirements-test.lock"

# Pins without a wheel that may be built from source, which takes a C compiler.
FROM_SOURCE = {"riskcal"}
# A CUDA build of torch brings these along; a lock must install with and without a GPU.
WITH_TORCH = re.compile(r"nvidia-|cuda-|triton")

# The oldest release of each: what asks for a later one cannot be installed with it.
PYTHONS = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")
SYSTEMS = {
    "Linux x86_64": {
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
    },
    "macOS arm64": {
        "sys_platform": "darwin",
        "platform_system": "Darwin",
        "platform_machine": "arm64",
        "os_name": "posix",
    },
    "Windows": {
        "sys_platform": "win32",
        "platform_system": "Windows",
        "platform_machine": "AMD64",
        "os_name": "nt",
    },
}
PLATFORMS = {
    "Linux x86_64": [
        *(f"manylinux_2_{minor}_x86_64" for minor in range(28, 4, -1)),
        *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"),
    ],
    "macOS arm64": list(tags.mac_platforms((14, 0), "arm64")),  # as torch asks for
    "Windows": ["win_amd64"],
}


def needed(roots: list[Requirement]) -> set[str]:
    """The names of all installed distributions that these requirements lead to."""
    names: set[str] = set()
    seen: set[tuple[str, str]] = set()
    waiting = list(roots)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            names.add(name)
            for text in metadata.distribution(name).requires or ():
                child = Requirement(text)
                if child.marker is None or child.marker.evaluate({"extra": extra}):
                    waiting.append(child)
    return names


def write() -> None:
    """Write both locks and environment.yml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    tools = chain.from_iterable(extras.pop(name) for name in ("test", "certify", "pdf", "slides"))
    of_tests = [Requirement(text) for text in tools]
    of_book = [Requirement(text) for text in chain(project["dependencies"], *extras.values())]
    book = needed(of_book)
    test = needed(of_tests) - book
    markers = {canonicalize_name(root.name): root.marker for root in of_tests if root.marker}
    installed = {}
    for distribution in metadata.distributions():
        name = canonicalize_name(distribution.name)
        # A local suffix such as +cpu names a build that the package index does not have.
        pin = f"{distribution.name}=={distribution.version.partition('+')[0]}"
        installed[name] = f"{pin}; {markers[name]}" if name in markers else pin
    pins = {
        path: sorted(
            (installed[name] for name in names if not WITH_TORCH.match(name)), key=str.lower
        )
        for path, names in ((BOOK, book), (TEST, test))
    }
    purpose = {
        BOOK: "the package and the book",
        TEST: "the tests and the linters, in addition to requirements.lock",
    }
    for path, lines in pins.items():
        heading = f"# Written by `make lock`: exact versions for {purpose[path]}."
        path.write_text("\n".join([heading, *lines]) + "\n", encoding="utf-8")
    environment = [
        "# Written by `make lock`: Python from conda, the pins of requirements.lock through pip.",
        *("name: labelaudit", "channels:", "  - conda-forge", "dependencies:"),
        *("  - python=3.11", "  - pip", "  - pip:"),
        *(f"      - {pin}" for pin in pins[BOOK]),
        "      - -e .",
    ]
    (ROOT / "environment.yml").write_text("\n".join(environment) + "\n", encoding="utf-8")


def pinned(path: Path) -> list[Requirement]:
    """The pins of a lock file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


def index_page(name: str) -> dict[str, str]:
    """The files that the package index lists under a name, each with the Pythons it is for.

    A file that was withdrawn is left out: its own developers say that it does not work.
    """
    from pip._internal.models.index import PyPI

    with urllib.request.urlopen(f"{PyPI.simple_url}/{canonicalize_name(name)}/") as page:
        links = re.findall(r"<a\b([^>]*)>\s*([^<]*?)\s*</a>", page.read().decode())
    pythons = re.compile(r'data-requires-python="([^"]*)"')
    return {
        file: html.unescape(match[1]) if (match := pythons.search(attributes)) else ""
        for attributes, file in links
        if "data-yanked" not in attributes
    }


def has_wheel(files: dict[str, str], version: Version, python: str, platforms: list[str]) -> bool:
    """Whether one of the files is a wheel of this version for this Python and these platforms."""
    numbers = tuple(int(part) for part in python.split(".")[:2])
    supported = {
        *tags.cpython_tags(numbers, platforms=platforms),
        *tags.compatible_tags(numbers, f"cp{numbers[0]}{numbers[1]}", platforms),
    }
    for file, pythons in files.items():
        if file.endswith(".whl") and f"-{version}-" in file:
            _, built, _, built_for = parse_wheel_filename(file)
            if (
                built == version
                and built_for & supported
                and SpecifierSet(pythons).contains(python)
            ):
                return True
    return False


def missing() -> Iterator[tuple[bool, str]]:
    """For each pin that has no wheel: whether it can be built from source, and a line on it."""
    locks = {path: pinned(path) for path in (BOOK, TEST)}
    pins = [pin for lock in locks.values() for pin in lock]
    with ThreadPoolExecutor(8) as pool:
        pages = dict(zip(pins, pool.map(lambda pin: index_page(pin.name), pins), strict=True))
    for (path, lock), python, system in product(locks.items(), PYTHONS, SYSTEMS):
        environment = SYSTEMS[system] | {
            "python_version": python.rpartition(".")[0],
            "python_full_version": python,
        }
        for pin in lock:
            if pin.marker is not None and not pin.marker.evaluate(environment):
                continue
            version = Version(next(iter(pin.specifier)).version)
            if not has_wheel(pages[pin], version, python, PLATFORMS[system]):
                pythons = pages[pin].get(f"{pin.name}-{version}.tar.gz")
                built = (
                    pin.name in FROM_SOURCE
                    and pythons is not None
                    and python in SpecifierSet(pythons)
                )
                line = (
                    f"{path.name}: no wheel of {pin.name} {version} for {system}, Python {python}"
                )
                yield built, line + (" (built from source)" if built else "")


def main() -> int:
    """Write the locks, or print what is missing and give status 1 if anything is."""
    if sys.argv[1:] == ["write"]:
        write()
        return 0
    if sys.argv[1:] != ["check"]:
        print("usage: python .ci/lock.py write | check", file=sys.stderr)
        return 2
    gaps = list(missing())
    for _, line in gaps:
        print(line)
    failed = not all(built for built, _ in gaps)
    ending = "cannot be installed" if failed else "can be installed"
    print(f"the locks {ending} on {', '.join(SYSTEMS)} with Python {', '.join(PYTHONS)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
