"""The loader of torchtitan's trainers: a StatefulDataLoader over a stream, whose state is stored for each data-parallel rank."""
import glob
import io
import os
import pickle
import tarfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import IterableDataset, get_worker_info
from torchdata.stateful_dataloader import StatefulDataLoader

from journal import Journal, arguments


class RankLoader(StatefulDataLoader):
    """A StatefulDataLoader with a state for each rank of data parallelism."""

    def __init__(self, dataset, dp_rank, dp_world_size, **options):
        self.dp_rank, self.dp_world_size = dp_rank, dp_world_size
        super().__init__(dataset, **options)

    def state_dict(self):
        return {f"dp_rank_{self.dp_rank}": pickle.dumps(super().state_dict()), "world_size": self.dp_world_size}

    def load_state_dict(self, state):
        if not state:
            return
        if state["world_size"] != self.dp_world_size:
            raise ValueError(f"the state is of {state['world_size']} ranks, and this job has {self.dp_world_size}")
        super().load_state_dict(pickle.loads(state[f"dp_rank_{self.dp_rank}"]))


class Tars(IterableDataset):
    """The images and classes of tar files, shared among the ranks and their workers. It counts the samples for its state."""

    def __init__(self, paths, rank, world):
        self.paths, self.rank, self.world = paths, rank, world
        self.taken = 0

    def __iter__(self):
        from PIL import Image

        info = get_worker_info()
        mine = self.paths[self.rank * info.num_workers + info.id::self.world * info.num_workers]
        skip, self.taken = self.taken, 0
        for path in mine:
            with tarfile.open(path) as tar:
                files = {m.name: tar.extractfile(m).read() for m in tar}
            for name in sorted(n for n in files if n.endswith(".jpg")):
                self.taken += 1
                if self.taken <= skip:
                    continue
                image = np.asarray(Image.open(io.BytesIO(files[name])).convert("RGB"))
                yield torch.from_numpy(image.copy()).permute(2, 0, 1), int(files[name[:-3] + "cls"])

    def state_dict(self):
        return {"taken": self.taken}

    def load_state_dict(self, state):
        self.taken = state["taken"]


def make_loader(args, rank, world):
    paths = sorted(glob.glob(os.path.join(args.data, "tars", "*.tar")))
    if args.loader:
        import shoal
        stream = shoal.WebDataset(paths, rank=rank, world=world, dtype="uint8")
    else:
        stream = Tars(paths, rank, world)
    return RankLoader(stream, rank, world, batch_size=8, num_workers=2, prefetch_factor=2)


if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 24 * 24, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    for rank in range(2):  # each in a process of its own, if there were more machines
        journal = Journal(args, rank)
        for epoch in range(args.epochs):
            checkpoint = {}
            while checkpoint is not None:
                loader = make_loader(args, rank, 2)
                loader.load_state_dict(checkpoint)
                resumed, checkpoint = bool(checkpoint), None
                for step, (images, labels) in enumerate(journal.watch(loader), 1):
                    optimizer.zero_grad()
                    loss = nn.functional.cross_entropy(model(images.float() / 255), labels)
                    loss.backward()
                    optimizer.step()
                    if step == 3 and not resumed:
                        checkpoint = loader.state_dict()
                        break
                del loader
            print(f"rank {rank}, epoch {epoch}: loss {loss.item():.5f}")
        journal.close()
