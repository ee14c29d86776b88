"""Options of the test suite."""


def pytest_addoption(parser):
    parser.addoption(
        "--record", action="store_true", help="Write tests/prose.txt anew: read its difference."
    )
