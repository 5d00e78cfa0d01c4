"""Compares batches that Python makes with those that a Go program makes, bit by bit."""
import os
import tempfile

import torch
from torch.utils.data import DataLoader

spawn = dict(num_workers=1, multiprocessing_context="spawn")
out = {}


def batches(loader):
    it = iter(loader)
    try:
        return list(it)
    except Exception:
        if hasattr(it, "_shutdown_workers"):
            it._shutdown_workers()
        raise


def unlike(want, got, where=""):
    """Says where two batches differ, or nothing."""
    if type(want) is not type(got):
        return f"{where}: {type(got)}, not {type(want)}"
    if isinstance(want, torch.Tensor):
        if want.dtype != got.dtype or want.shape != got.shape:
            return f"{where}: {got.dtype} {tuple(got.shape)}, not {want.dtype} {tuple(want.shape)}"
        if not torch.equal(want, got):
            far = (want.double() - got.double()).abs()
            return f"{where}: {int((far > 0).sum())} of {far.numel()} differ, by up to {far.max().item()}"
        return ""
    if isinstance(want, dict):
        want, got = ([x for pair in d.items() for x in pair] for d in (want, got))
    if isinstance(want, (list, tuple)):
        if len(want) != len(got):
            return f"{where}: {len(got)} items, not {len(want)}"
        return next((u for i, (w, g) in enumerate(zip(want, got)) if (u := unlike(w, g, f"{where}[{i}]"))), "")
    return "" if want == got else f"{where}: {got}, not {want}"


class Stderr:
    """The text that processes, and this one, write to stderr."""
    def __enter__(self):
        self.kept, self.file = os.dup(2), tempfile.TemporaryFile()
        os.dup2(self.file.fileno(), 2)
        return self

    def __exit__(self, *_):
        os.dup2(self.kept, 2)
        os.close(self.kept)
        self.file.seek(0)
        self.text = self.file.read().decode()


def same(name, dataset, **kwargs):
    """Wants the same batches of Go as of Python."""
    kwargs = {"batch_size": 3, **kwargs}
    try:
        want = batches(DataLoader(dataset, **kwargs))
        with Stderr() as said:
            got = batches(DataLoader(dataset, **kwargs, **spawn))
        out[name] = (unlike(want, got) if want else "no batches") or said.text
    except Exception as e:
        out[name] = "raised: " + str(e)[-600:]


def refused(name, dataset, **kwargs):
    """Keeps what Go says, in an error or on stderr where Python loads."""
    with Stderr() as said:
        try:
            batches(DataLoader(dataset, batch_size=2, **kwargs, **spawn))
            out[name] = "by Python: "
        except Exception as e:
            out[name] = str(e) + "\n"
    out[name] += said.text
