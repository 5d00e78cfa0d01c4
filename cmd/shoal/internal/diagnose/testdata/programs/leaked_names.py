import os, signal, time
import torch
import fault

if __name__ == "__main__":
    torch.multiprocessing.set_sharing_strategy("file_system")
    kept = [torch.ones(1 << 16).share_memory_() for _ in range(8)]
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                exe = os.readlink(f"/proc/{name}/exe")
                group = os.getpgid(int(name))
            except OSError:
                continue
            if exe.endswith("torch_shm_manager") and group == os.getpgid(0):
                os.kill(int(name), signal.SIGKILL)
    fault.ready(os.getpid())
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)
