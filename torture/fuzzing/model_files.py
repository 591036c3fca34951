"""Trained models with damaged files: evaluated, used for predictions, exported."""

import hashlib
import json
import os
from pathlib import Path
from random import Random

from prnas.models.card import OWN_CHECKSUM
from prnas.models.model import CARD, WEIGHTS
from tests.support.made_data import picture
from tests.support.made_models import save_tiny
from torture.fuzzing import mutate, odd
from torture.fuzzing.data_sets import odd_file
from torture.fuzzing.kinds import Arena, Kind, Maker
from torture.fuzzing.tensor_files import spoilt_tensors
from torture.fuzzing.texts import spoilt_text


def _model(arena: Arena) -> Maker:
    folder = save_tiny(arena.pristine / "model")
    weights, card = (folder / WEIGHTS).read_bytes(), (folder / CARD).read_text(encoding="utf-8")
    fields = json.loads(card)
    del fields[OWN_CHECKSUM]  # it would hide whatever else is wrong
    card = json.dumps(fields)
    image = picture(arena.pristine / "image.png")

    def make(random: Random, case: Path) -> list[str]:
        name = os.fsdecode(b"m\xff") if random.random() < 0.05 else "model"
        folder = case / name
        folder.mkdir()
        match random.randrange(8):
            case 0:
                spoilt = mutate.spoil(weights, random, mutate.BINARY, [])
                _write(folder, spoilt, card, random)
            case 1 | 2:
                spoilt = spoilt_tensors(weights, random)
                _write(folder, spoilt, _tied(card, spoilt), random)
            case 3 | 4 | 5:
                data = mutate.replace_values(json.loads(card), random)
                text = json.dumps(data)
                text = _tied(text, weights) if random.random() < 0.8 else text
                _write(folder, weights, text, random)
            case 6:
                text = spoilt_text(card, random, [card], arena.canary)
                (folder / WEIGHTS).write_bytes(weights)
                (folder / CARD).write_bytes(text)
            case _:
                _write(folder, weights, card, random)
                path = folder / random.choice((WEIGHTS, CARD))
                if random.random() < 0.5:
                    odd_file(path, random)
                else:
                    path.write_bytes(odd.pickled(arena.canary))
        return _command(random, folder, case, image)

    return make


def _write(folder: Path, weights: bytes, card: str, random: Random) -> None:
    (folder / WEIGHTS).write_bytes(weights)
    (folder / CARD).write_text(card, encoding="utf-8")


def _tied(card: str, weights: bytes) -> str:
    """The card with the checksum of these weights."""
    data = json.loads(card)
    if isinstance(data, dict):
        data["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    return json.dumps(data)


def _command(random: Random, folder: Path, case: Path, image: Path) -> list[str]:
    match random.randrange(8):
        case 0 | 1 | 2:
            options = ["--data", "digits"] if random.random() < 0.5 else []
            out = ["-o", str(case / "out")] if random.random() < 0.2 else []
            return ["evaluate", str(folder), "--skip-speed", *options, *out]
        case 3:
            return ["export", str(folder), "-o", str(case / "out.safetensors")]
        case 4 if random.random() < 0.2:  # checked in a process of its own, which takes its time
            return ["export", str(folder), "-o", str(case / "out.py")]
        case _:
            return ["predict", str(folder), str(image), "--json"]


KINDS = (Kind("model", _model, share=0.3),)
