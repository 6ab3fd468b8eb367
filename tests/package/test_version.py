# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The version: it stands in one place, and the changelog and the tag of a release agree with it."""

from __future__ import annotations

import importlib.metadata
import pathlib
import runpy
import subprocess
import sys

import pytest

import cuda_core_cffi

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "version"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason=".ci is not in this copy of the sources")


@pytest.fixture(scope="module")
def disagreements():
    """Return the function that compares."""
    return runpy.run_path(str(SCRIPT))["disagreements"]


def test_the_installed_package_has_the_version_of_the_source():
    assert importlib.metadata.version("cuda-core-cffi") == cuda_core_cffi.__version__


def test_the_changelog_begins_with_the_version_of_the_source():
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (cuda_core_cffi.__version__, "")


def test_another_tag_is_refused():
    done = subprocess.run([sys.executable, str(SCRIPT), "v99.0.0"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"the tag is v99.0.0, but the version is {cuda_core_cffi.__version__}" in done.stderr


def test_a_release_that_agrees_is_accepted(disagreements):
    changelog = ["## [1.3.0] - 2026-11-25", "## [1.2.0] - 2026-01-31"]
    assert disagreements("1.3.0", changelog, ["v1.3.0"], release=True) == []


@pytest.mark.parametrize(
    ("changelog", "tag", "message"),
    [
        (["## [1.2.0] - 2026-11-25"], "v1.3.0", "begins with 1.2.0, but the version is 1.3.0"),
        (["## [1.3.0] - Unreleased"], "v1.3.0", "no date for 1.3.0"),
        (["## Unreleased", "## [1.3.0] - 2026-11-25"], "v1.3.0", "'## Unreleased' is not like"),
        (["## [1.3.0] - 25 November"], "v1.3.0", "is not like"),
        (["## [1.3.0] - 2026-11-25", "## [1.2.0] - Unreleased"], "v1.3.0", "1.2.0 has no date"),
        (["## [1.3.0] - 2026-11-25", "## [1.3.0] - 2026-11-24"], "v1.3.0", "two headings of one version"),
        (["## [1.3.0] - 2026-11-25"], "1.3.0", "the tag is 1.3.0, but the version is 1.3.0: v1.3.0"),
        ([], "v1.3.0", "no heading"),
    ],
)
def test_what_does_not_agree_is_named(disagreements, changelog, tag, message):
    (line,) = disagreements("1.3.0", changelog, [tag], release=True)
    assert message in line


def test_between_releases_the_newest_needs_neither_date_nor_tag(disagreements):
    assert disagreements("1.3.0", ["## [1.3.0] - Unreleased"], [], release=False) == []
