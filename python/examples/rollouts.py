"""Actors send rollouts to a learner through one bounded queue, and are killed while they send.

    python rollouts.py [--module torch.multiprocessing] [--kills 20]

With shoal.multiprocessing a rollout of a killed actor is whole or not there, and the queue goes on.
With torch.multiprocessing an actor that is killed while it writes keeps the lock of the pipe, so that
all others wait for ever, or leaves half a message. The program gives up after some seconds without a
rollout. The last line is a report in JSON.
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

ACTORS, STEPS = 3, 128


def act(q, actor):
    """Sends rollouts until it is killed."""
    torch.set_num_threads(1)
    sequence = 0
    while True:
        observations = torch.full((STEPS, 64), float(sequence))
        q.put({"actor": actor, "sequence": sequence, "observations": observations, "note": "x" * 20000})
        sequence += 1


def whole(rollout):
    """Reports whether a rollout is as its actor sent it."""
    return bool((rollout["observations"] == float(rollout["sequence"])).all()) and len(rollout["note"]) == 20000


def stop(number, frame):
    raise TimeoutError("the rest of a rollout did not come")


def get(q, patience):
    """Takes a rollout. get of PyTorch waits for the rest of a message without a limit, so an alarm ends it."""
    signal.setitimer(signal.ITIMER_REAL, 2 * patience)
    try:
        return q.get(timeout=patience)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", default="shoal.multiprocessing")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--patience", type=float, default=10.0, help="seconds without a rollout before giving up")
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, stop)
    mp = importlib.import_module(args.module)
    ctx = mp.get_context("fork")
    q = ctx.Queue(8)
    made, received, kills, broken, began = 0, 0, 0, [], time.monotonic()
    actors = []
    outcome = "went on"
    try:
        while kills < args.kills:
            while len(actors) < ACTORS:
                actors.append(ctx.Process(target=act, args=(q, made), daemon=True))
                actors[-1].start()
                made += 1
            for _ in range(random.randrange(1, 40)):
                if not whole(get(q, args.patience)):
                    broken.append(received)
                received += 1
            victim = actors.pop(random.randrange(ACTORS))
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
            kills += 1
        for _ in range(50):
            whole(get(q, args.patience))
            received += 1
    except queue.Empty:
        outcome = f"nothing came for {args.patience} s after {kills} kills"
    except Exception as e:
        outcome = f"{type(e).__name__} after {kills} kills: {e}"
    for p in actors:
        os.kill(p.pid, signal.SIGKILL)
        p.join()
    print(json.dumps({"module": args.module, "kills": kills, "received": received, "broken": len(broken),
                      "outcome": outcome, "seconds": round(time.monotonic() - began, 1),
                      "ok": outcome == "went on" and not broken}), flush=True)
    os._exit(0)  # torch's queue may have a thread that waits for ever


if __name__ == "__main__":
    main()
