from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time

import pytest

from decentral.threads import Direct, Work, Worker, caps, share


def test_the_cores_are_shared_and_nobody_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    assert [share(processes) for processes in (0, 1, 2, 3, 8, 50)] == [8, 8, 4, 2, 1, 1]


def test_a_process_with_the_caps_has_so_many_torch_threads() -> None:
    code = "import torch; print(torch.get_num_threads())"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | caps(1), capture_output=True, text=True)
    assert done.stdout.strip() == "1"


def test_capping_imports_no_torch_and_reaches_one_that_is_there() -> None:
    code = (
        "import sys, decentral.threads as t; t.cap(1); assert 'torch' not in sys.modules; "
        "import torch; t.cap(3); print(torch.get_num_threads())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "3", done.stderr


@pytest.mark.parametrize("kind", [Direct, Worker])
def test_work_is_done_in_order_and_raises_what_it_raises(kind: type) -> None:
    async def test() -> None:
        work: Work = kind("ann") if kind is Worker else kind()
        done: list[int] = []

        def call(number: int) -> threading.Thread:
            time.sleep(0.01 * (3 - number))
            done.append(number)
            return threading.current_thread()

        threads = await asyncio.gather(*(work(call, number) for number in range(3)))
        assert done == [0, 1, 2]
        assert len(set(threads)) == 1
        assert (threads[0] is threading.current_thread()) == (kind is Direct)
        with pytest.raises(ZeroDivisionError):
            await work(lambda: 1 / 0)
        work.close()

    asyncio.run(test())
