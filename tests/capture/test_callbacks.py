"""Callbacks for trainers: real ones where they are installed, and what they need of a trainer."""

import subprocess
import sys
import types

import pytest

import torchdiag
from torchdiag import callbacks
from torchdiag.history import run_folder

torch = pytest.importorskip("torch")


SMALL = {"warmup": 1, "steps": 3, "exceptions": False}


def test_importing_the_callbacks_imports_no_trainer():
    code = "import sys, torchdiag.callbacks; print({'transformers', 'lightning', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_library_that_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning", None)
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monkeypatch.setitem(sys.modules, "pytorch_lightning", None)
    with pytest.raises(torchdiag.TorchdiagError, match="pip install lightning"):
        callbacks.for_lightning()


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return {"x": torch.ones(4), "labels": torch.zeros(1)}


def test_a_transformers_trainer(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 1)

        def forward(self, x, labels):
            found = self.linear(x)
            return {"loss": ((found - labels) ** 2).mean(), "logits": found}

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), max_steps=20, per_device_train_batch_size=1, use_cpu=True, report_to=[],
        save_strategy="no", disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    callback = callbacks.for_transformers(tmp_path / "run", **SMALL)
    transformers.Trainer(Model(), arguments, train_dataset=Data(), callbacks=[callback]).train()
    result = run_folder.read(tmp_path / "run").result
    assert (result.status, result.failure) == ("complete", None)
    assert len(result.find("timed").step_ns) == 3
    assert result.breakdown is not None


def lightning_trainer(tmp_path, callback, steps):
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):
            if index == steps:
                raise ValueError("no more data")
            return self.linear(batch["x"]).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    trainer = lightning.Trainer(
        max_steps=20, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path, callbacks=[callback],
    )  # fmt: skip
    trainer.fit(Module(), torch.utils.data.DataLoader(Data()))


def test_a_lightning_trainer(tmp_path):
    pytest.importorskip("lightning.pytorch")
    lightning_trainer(tmp_path, callbacks.for_lightning(tmp_path / "run", **SMALL), steps=None)
    assert run_folder.read(tmp_path / "run").result.status == "complete"


def test_a_lightning_trainer_that_fails(tmp_path):
    pytest.importorskip("lightning.pytorch")
    with pytest.raises(ValueError, match="no more data"):
        lightning_trainer(tmp_path, callbacks.for_lightning(tmp_path / "run", **SMALL), steps=5)
    assert run_folder.read(tmp_path / "run").result.failure.kind == "exception"


def stand_in(monkeypatch, module, name):
    """A library that has the base class and no more."""
    library = types.ModuleType(module)
    setattr(library, name, type(name, (), {}))
    for part in (module.split(".")[0], module):
        monkeypatch.setitem(sys.modules, part, library)


def test_what_a_trainer_has_to_call(tmp_path, monkeypatch):
    stand_in(monkeypatch, "lightning.pytorch", "Callback")
    trainer = types.SimpleNamespace(is_global_zero=True)
    callback = callbacks.for_lightning(tmp_path / "run", **SMALL)
    callback.on_train_start(trainer, None)
    for number in range(30):
        callback.on_train_batch_end(trainer, None, None, None, number)
    callback.on_train_end(trainer, None)
    assert run_folder.read(tmp_path / "run").result.find("timed") is not None


def test_other_ranks_are_not_measured(tmp_path, monkeypatch):
    stand_in(monkeypatch, "lightning.pytorch", "Callback")
    callback = callbacks.for_lightning(tmp_path / "run", **SMALL)
    trainer = types.SimpleNamespace(is_global_zero=False)
    callback.on_train_start(trainer, None)
    callback.on_train_batch_end(trainer, None)
    callback.on_train_end(trainer, None)
    assert not (tmp_path / "run").exists()
