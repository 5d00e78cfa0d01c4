import mmap, os, sys, tempfile, time
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info
import fault

class Files(Dataset):
    def __init__(self, path, group, started):
        self.path, self.group, self.started = path, group, started
    def __len__(self):
        return 100000
    def __getitem__(self, i):
        slow = get_worker_info().id == 1
        if self.started:
            self.started.release()
            self.started = None
        if slow and self.group:
            fault.join_group(self.group)
            self.group = ""
        if slow:
            f = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
            buffer = mmap.mmap(-1, 1 << 20)
            os.preadv(f, [buffer], (i % 8) << 20)
            os.close(f)
        return torch.ones(4)

def device(path):
    n = os.stat(path).st_dev
    return f"{os.major(n)}:{os.minor(n)}"

if __name__ == "__main__":
    path = os.path.join(os.environ.get("SHOAL_FAULT_DIR", "/var/tmp"), f"shoal-fault-{os.getpid()}")
    with open(path, "wb") as f:
        f.write(b"x" * (8 << 20))
        f.flush()
        os.fsync(f.fileno())
    group = fault.group("blkio", "slow", throttle__read_bps_device=f"{device(path)} 102400")
    ctx = fault.context()
    started = ctx.Semaphore(0)
    loader = DataLoader(Files(path, group, started), batch_size=1, num_workers=3, multiprocessing_context=ctx)
    batches = iter(loader)
    for _ in range(3):
        started.acquire()
    time.sleep(0.5)
    fault.ready(batches._workers[1].pid)
    for _ in batches:
        pass
