"""A trainer publishes weights to servers, and both may be killed at any time.

    python weights.py [--module torch.multiprocessing]

With shoal.multiprocessing the weights are a Latest: one store for all servers, which skip versions if
they are slow. A killed server leaves nothing, and the weights outlive a killed trainer. With
torch.multiprocessing the trainer needs a queue for each server; the values for a dead server stay in
its queue, and the servers stop when the trainer dies. The last line is a report in JSON.
"""

import argparse
import importlib
import json
import os
import signal
import time

import torch

SERVERS, SIZE = 3, 250_000  # floats of the weights: 1 MB


def train(channel, first, steps):
    """Publishes weights in which every element is the number of the step."""
    for step in range(first, first + steps):
        weights = {"layer": torch.full((SIZE,), float(step)), "step": step, "stored": time.monotonic()}
        if hasattr(channel, "store"):
            channel.store(weights)
        else:
            for q in channel:
                q.put(weights)
        time.sleep(0.005)
    time.sleep(1000)  # until it is killed


def serve(channel, results, last):
    """Takes weights until the last step, and reports the median delay."""
    version, step, delays = 0, -1, []
    while step < last:
        if hasattr(channel, "wait"):
            weights, version = channel.wait(version)
        else:
            weights = channel.get()
        delays.append(time.monotonic() - weights["stored"])
        step = weights["step"]
        if not bool((weights["layer"] == float(step)).all()):
            results.put("mixed")
            return
    results.put(sorted(delays)[len(delays) // 2])


def kill(p):
    os.kill(p.pid, signal.SIGKILL)
    p.join()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", default="shoal.multiprocessing")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    mp = importlib.import_module(args.module)
    ctx = mp.get_context("spawn")
    shared = hasattr(mp, "Latest")
    results = ctx.SimpleQueue()
    start = {"layer": torch.zeros(SIZE), "step": 0, "stored": time.monotonic()}
    channels = [ctx.Latest(start)] * SERVERS if shared else [ctx.Queue() for _ in range(SERVERS)]
    last = 2 * args.steps if shared else args.steps
    servers = [ctx.Process(target=serve, args=(c, results, last), daemon=True) for c in channels]
    for p in servers:
        p.start()
    trainer = ctx.Process(target=train, args=(channels[0] if shared else channels, 1, args.steps), daemon=True)
    trainer.start()
    while (channels[0].version if shared else 2) < 2:
        time.sleep(0.01)
    kill(servers[0])
    report = {"module": args.module, "killed": ["server"]}
    if shared:
        while channels[0].version <= args.steps:
            time.sleep(0.01)
        kill(trainer)
        report["killed"].append("trainer")
        trainer = ctx.Process(target=train, args=(channels[0], args.steps + 1, args.steps), daemon=True)
        trainer.start()
    delays = [results.get() for _ in servers[1:]]
    report["median delay in ms"] = [round(1000 * d, 2) if d != "mixed" else d for d in delays]
    if shared:
        report["kept for the dead server"] = 0
        report["version"] = channels[0].version
    else:
        report["kept for the dead server"] = channels[0].qsize()
    kill(trainer)
    report["ok"] = "mixed" not in delays
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
