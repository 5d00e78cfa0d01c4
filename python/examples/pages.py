"""A writer fills pages for readers, which are killed with pages in their hands.

    python pages.py [--module torch.multiprocessing] [--kills 20]

With shoal.multiprocessing a page is a tensor in shared memory, which is free again when the last
process that has it drops it or dies. So the writer needs no list of free pages, and the memory stays
bounded. With torch.multiprocessing the pages are made once, and readers return their numbers through a
queue: each killed reader takes its page with it, until the writer finds none. The last line is a
report in JSON.
"""

import argparse
import importlib
import json
import os
import queue
import random
import signal
import time

import torch

PAGES, ELEMENTS, READERS = 12, 65536, 3


def read(full, free, pages, read_count):
    """Reads pages until it is killed. Each page is held for some milliseconds."""
    while True:
        got = full.get()
        page = got if pages is None else pages[got]
        value = page[0].item()
        time.sleep(0.003)
        if not bool((page == value).all()):
            os._exit(3)
        if free is not None:
            free.put(got)
        with read_count.get_lock():
            read_count.value += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", default="shoal.multiprocessing")
    parser.add_argument("--kills", type=int, default=20)
    args = parser.parse_args()
    mp = importlib.import_module(args.module)
    ctx = mp.get_context("fork")
    shared = args.module.startswith("shoal")
    full, free, pages = ctx.Queue(4), None, None
    read_count = ctx.Value("q", 0)
    if not shared:
        free, pages = ctx.Queue(), torch.zeros(PAGES, ELEMENTS).share_memory_()
        for i in range(PAGES):
            free.put(i)
    readers, kills, written, most, outcome = [], 0, 0, 0, "went on"
    torch.set_num_threads(1)
    while kills < args.kills and outcome == "went on":
        while len(readers) < READERS:
            readers.append(ctx.Process(target=read, args=(full, free, pages, read_count), daemon=True))
            readers[-1].start()
        for _ in range(random.randrange(5, 15)):
            try:
                if shared:
                    import shoal
                    from shoal.multiprocessing import runtime

                    page = shoal.empty(ELEMENTS).fill_(float(written))
                    full.put(page, timeout=10)
                    del page
                    most = max(most, runtime.stats()["bytes"])
                else:
                    i = free.get(timeout=5)
                    pages[i].fill_(float(written))
                    full.put(i, timeout=10)
            except (queue.Empty, queue.Full) as e:
                outcome = f"{type(e).__name__} after {kills} kills: no page is left, or a lock is held"
                break
            written += 1
        if outcome == "went on":
            victim = readers.pop(random.randrange(READERS))
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
            kills += 1
    for p in readers:
        os.kill(p.pid, signal.SIGKILL)
        p.join()
    report = {"module": args.module, "kills": kills, "written": written, "outcome": outcome}
    if shared:
        report["most bytes in use"] = most
        report["pages in use at most"] = most // (4 * ELEMENTS)
    report["ok"] = outcome == "went on"
    print(json.dumps(report), flush=True)
    os._exit(0)  # torch's queue may have a thread that waits for ever


if __name__ == "__main__":
    main()
