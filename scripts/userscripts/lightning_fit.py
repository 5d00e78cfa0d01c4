"""A LightningModule and a LightningDataModule, fitted and validated by a Trainer; seeds by seed_everything."""
import os

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from journal import Journal, arguments
from plain_loop import Digits


class DigitsModule(L.LightningDataModule):
    def __init__(self, root, **workers):
        super().__init__()
        self.root, self.workers = root, workers

    def setup(self, stage):
        n = len(np.load(os.path.join(self.root, "labels.npy")))
        self.train, self.valid = Digits(self.root, 0, n * 3 // 4), Digits(self.root, n * 3 // 4, n)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=32, shuffle=True, persistent_workers=True, **self.workers)

    def val_dataloader(self):
        return DataLoader(self.valid, batch_size=50, persistent_workers=True, **self.workers)


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))

    def training_step(self, batch, _):
        images, labels = batch
        return nn.functional.cross_entropy(self.model(images), labels)

    def validation_step(self, batch, _):
        images, labels = batch
        self.log("right", (self.model(images).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


class Noted(L.Callback):
    """What journal.watch is in a loop of one's own."""

    def __init__(self, journal):
        self.journal = journal

    def on_train_start(self, *_):
        self.journal.start()

    def on_train_batch_start(self, trainer, module, batch, *_):
        self.journal.note(batch)

    def on_validation_batch_start(self, trainer, module, batch, *_):
        self.journal.note(batch)

    def on_train_end(self, *_):
        self.journal.stop()


if __name__ == "__main__":
    args = arguments()
    if args.loader:
        torch.multiprocessing.set_executable(args.loader)  # line one
    torch.set_num_threads(1)
    L.seed_everything(1, workers=True)
    data = DigitsModule(args.data, num_workers=2, multiprocessing_context="spawn" if args.loader else None)  # line two
    journal = Journal(args)
    trainer = L.Trainer(max_epochs=args.epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, callbacks=[Noted(journal)])
    trainer.fit(Classifier(), datamodule=data)
    print(f"right: {trainer.callback_metrics['right'].item():.4f}")
    journal.close()
