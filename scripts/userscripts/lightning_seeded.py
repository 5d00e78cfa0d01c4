"""Lightning's Trainer after seed_everything(workers=True), which gives each DataLoader a worker_init_fn."""
import os

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from journal import Journal, arguments
from lightning_fit import Noted


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))

    def training_step(self, batch, _):
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images.float() / 255), labels)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    L.seed_everything(1, workers=True)
    paths = [os.path.join(args.data, name) for name in ("images.npy", "labels.npy")]
    if args.loader:
        import shoal
        train = shoal.Npy(paths)
    else:
        train = TensorDataset(*(torch.from_numpy(np.load(path)) for path in paths))
    loader = DataLoader(train, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
    journal = Journal(args)
    trainer = L.Trainer(max_epochs=args.epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, callbacks=[Noted(journal)])
    trainer.fit(Classifier(), loader)
    print(f"loss: {trainer.callback_metrics['loss'].item():.5f}")
    journal.close()
