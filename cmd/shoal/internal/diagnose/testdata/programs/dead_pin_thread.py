# There is no accelerator: the program claims one, and the thread ends at once.
import os, threading, time
import torch
from torch.utils.data import DataLoader, TensorDataset, _utils
import fault

def end(*args, **kwargs):
    time.sleep(1)

torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
if hasattr(torch, "accelerator"):
    torch.accelerator.is_available = lambda *args, **kwargs: True
    torch.accelerator.current_accelerator = lambda *args, **kwargs: torch.device("cuda")
    torch.accelerator.current_device_index = lambda *args, **kwargs: 0
_utils.pin_memory._pin_memory_loop = end

if __name__ == "__main__":
    loader = DataLoader(TensorDataset(torch.ones(1000, 2)), num_workers=2, pin_memory=True,
                        multiprocessing_context=fault.context())
    batches = iter(loader)
    threading.Timer(1.2, fault.ready, (os.getpid(),)).start()
    next(batches)
