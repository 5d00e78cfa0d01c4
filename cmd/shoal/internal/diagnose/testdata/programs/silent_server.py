# A worker waits for an answer that never comes.
import socket, threading
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info
import fault

class Remote(Dataset):
    def __init__(self, port):
        self.port, self.connection = port, None
    def __len__(self):
        return 100000
    def __getitem__(self, i):
        if get_worker_info().id == 1 and i > 4:
            self.connection = socket.create_connection(("127.0.0.1", self.port))
            self.connection.recv(1)
        return torch.full((8,), i)

if __name__ == "__main__":
    server = socket.create_server(("127.0.0.1", 0))
    data = Remote(server.getsockname()[1])
    loader = DataLoader(data, batch_size=1, num_workers=3, multiprocessing_context=fault.context())
    batches = iter(loader)
    kept = []
    def announce():
        kept.append(server.accept())
        threading.Event().wait(1)
        fault.ready(batches._workers[1].pid)
    threading.Thread(target=announce, daemon=True).start()
    for _ in batches:
        pass
