import os
import subprocess
import sys

import pytest
import threadpoolctl
import torch

from gridshift.threads import Threads, usable_cores


def of_blas():
    return {p["num_threads"] for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"}


def test_blas_and_torch_have_one_thread_inside_and_what_they_had_after_an_error():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        blas = of_blas()
        with pytest.raises(ZeroDivisionError), Threads(1):  # noqa: PT012
            assert of_blas() == {1}
            assert torch.get_num_threads() == 1
            raise ZeroDivisionError
        assert of_blas() == blas
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_limit_does_not_import_torch():
    code = (
        "import sys; from gridshift.threads import Threads\n"
        "with Threads(1): print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no such call here")
def test_cores_that_are_taken_from_the_process_do_not_count():
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(usable)})
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, usable)
