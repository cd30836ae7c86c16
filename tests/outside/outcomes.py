"""outcomes - a plugin of pytest that writes a line per test, "NAME OUTCOME", into the file OUTSIDE_RESULTS

An outcome is pass, fail or skip; "-" stands for a test, or a whole file, that is not run because the list of
the suite (OUTSIDE_LIST) says so. Each line is written as the test ends: a crash leaves the others.
"""

import os

import pytest

outcomes = {}
RANK = ["pass", "skip", "fail"]
results = open(os.environ["OUTSIDE_RESULTS"], "w", buffering=1)


def not_run():
    with open(os.environ["OUTSIDE_LIST"]) as rows:
        words = [row.split() for row in rows if row.strip() and not row.startswith("#")]
    return {row[0] for row in words if row[1] == "-"}


NOT_RUN = not_run()


@pytest.fixture
def initialize_from_pytest_config():
    """numba-cuda's tests ask for it by name; options of its repository, which its package lacks."""


def pytest_ignore_collect(collection_path, config):
    name = os.path.relpath(collection_path, config.rootpath)
    if name in NOT_RUN:
        results.write(f"{name} -\n")
        return True
    return None


def pytest_collectreport(report):
    if report.failed:
        results.write(f"{report.nodeid} fail\n")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid in NOT_RUN:
            results.write(f"{item.nodeid} -\n")
    items[:] = [item for item in items if item.nodeid not in NOT_RUN]


def pytest_runtest_logreport(report):
    outcome = {"passed": "pass", "skipped": "skip"}.get(report.outcome, "fail")
    before = outcomes.get(report.nodeid, "pass")
    outcomes[report.nodeid] = max(before, outcome, key=RANK.index)


def pytest_runtest_logfinish(nodeid):
    results.write(f"{nodeid} {outcomes.pop(nodeid, 'fail')}\n")
