"""Runs every test for each module and each start method.

``--modules`` and ``--methods`` are lists with commas. A summary in JSON is the last line of the
output: for each module and method, the numbers of tests that passed, failed, were skipped, and
differ as differences.py says.
"""

import importlib
import json

import pytest

import differences

MODULES = "shoal.multiprocessing,torch.multiprocessing"
METHODS = "spawn,forkserver,fork"
counts = {}


def pytest_addoption(parser):
    parser.addoption("--modules", default="shoal.multiprocessing", help=f"modules to test, such as {MODULES}")
    parser.addoption("--methods", default="spawn", help=f"start methods to test, such as {METHODS}")


def pytest_generate_tests(metafunc):
    if "ctx" not in metafunc.fixturenames:
        return
    modules = metafunc.config.getoption("--modules").split(",")
    methods = metafunc.config.getoption("--methods").split(",")
    metafunc.parametrize("ctx", [(m, s) for m in modules for s in methods], indirect=True,
                         ids=lambda p: f"{p[0].split('.')[0]}-{p[1]}")


@pytest.fixture
def ctx(request):
    """The context of a module and a start method."""
    name, method = request.param
    module = pytest.importorskip(name)
    if method not in module.get_all_start_methods():
        pytest.skip(f"no start method {method}")
    context = module.get_context(method)
    yield context
    for p in module.active_children():
        p.kill()
        p.join(30)


@pytest.fixture
def module(ctx, request):
    """The module of the context."""
    return importlib.import_module(key_of(request.node)[0])


@pytest.fixture
def torch():
    """PyTorch. Tests of tensors are skipped without it."""
    return pytest.importorskip("torch")


def key_of(item):
    return item.callspec.params["ctx"] if hasattr(item, "callspec") and "ctx" in item.callspec.params else None


def pytest_collection_modifyitems(items):
    for item in items:
        key = key_of(item)
        reason = differences.reason(key[0], key[1], item.originalname) if key else None
        if reason:
            item.add_marker(pytest.mark.skip(reason=f"difference: {reason}"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    key = key_of(item)
    if key is None or not (report.when == "call" or report.outcome != "passed"):
        return
    outcome = report.outcome
    if outcome == "skipped" and "difference: " in str(report.longrepr):
        outcome = "different"
    of = counts.setdefault(key[0], {}).setdefault(key[1], {"passed": 0, "failed": 0, "skipped": 0, "different": 0})
    of[outcome] += 1


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(json.dumps(counts, sort_keys=True))
