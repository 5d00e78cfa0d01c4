"""The Trainer of Hugging Face Transformers with a small model. It gives the DataLoader a worker_init_fn of its own."""
import glob
import json
import os

import torch
from torch import nn
from torch.utils.data import Dataset, default_collate
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from journal import Journal, arguments


class Lines(Dataset):
    """Rows of JSON lines."""

    def __init__(self, paths):
        self.rows = []
        for path in paths:
            with open(path) as f:
                self.rows += [json.loads(line) for line in f]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"x": torch.tensor(self.rows[i]["x"]), "y": torch.tensor(self.rows[i]["y"])}


class Regression(nn.Module):
    def __init__(self, journal):
        super().__init__()
        self.out, self.journal = nn.Linear(16, 1), journal

    def forward(self, x, y):
        self.journal.note({"x": x, "y": y})
        return {"loss": nn.functional.mse_loss(self.out(x).squeeze(1), y)}


class Noted(TrainerCallback):
    """The start and the end of the time that the journal measures."""

    def __init__(self, journal):
        self.journal = journal

    def on_epoch_begin(self, *_, **__):
        self.journal.start()

    def on_epoch_end(self, *_, **__):
        self.journal.stop()


if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    paths = sorted(glob.glob(os.path.join(args.data, "shards", "*.jsonl")))
    if args.loader:
        import shoal
        train = shoal.JSONLines(paths, columns={"x": "float32", "y": "float32"})
    else:
        train = Lines(paths)
    journal = Journal(args)
    options = TrainingArguments(args.journal, num_train_epochs=args.epochs, per_device_train_batch_size=32, learning_rate=0.01,
                                use_cpu=True, dataloader_num_workers=2, seed=1, report_to=[], save_strategy="no", disable_tqdm=True,
                                logging_strategy="no", remove_unused_columns=False)
    trainer = Trainer(Regression(journal), options, train_dataset=train, data_collator=default_collate, callbacks=[Noted(journal)])
    trainer.remove_callback(PrinterCallback)  # it prints times
    print(f"loss: {trainer.train().training_loss:.5f}")
    journal.close()
