"""Configs, genotypes and settings: the small files that people write."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

from prnas.config import recipes
from prnas.io.yaml_files import dump_yaml, parse_yaml
from prnas.space import zoo
from prnas.space.setting import SETTINGS, setting_to_data
from torture.fuzzing import mutate, odd
from torture.fuzzing.kinds import Arena, Kind, Maker


def spoilt_text(text: str, random: Random, others: Sequence[str], canary: Path) -> bytes:
    """A spoilt version of YAML or JSON: as bytes, as data, or with a program in it."""
    raw = text.encode()
    match random.randrange(20):
        case 0:
            programs = odd.yaml_programs(canary)
            starts = [start for start in range(len(raw)) if raw[start : start + 2] == b": "]
            start = random.choice(starts or [0])
            return raw[:start] + b": " + random.choice(programs) + b"\n" + raw[start + 2 :]
        case 1:
            return random.choice(hostile_texts(random))
        case number if number < 12:
            data = mutate.replace_values(parse_yaml(text), random)
            return json.dumps(data, ensure_ascii=random.random() < 0.5).encode(
                "utf-8", "surrogatepass"
            )
        case _:
            return mutate.spoil(raw, random, mutate.TEXT, [other.encode() for other in others])


def hostile_texts(random: Random) -> list[bytes]:
    """Small texts that cost a careless reader a lot."""
    size = random.choice((1_000, 30_000, 300_000, 4_100_000))
    keys = b",".join(b'"k%d":0' % number for number in range(size // 10))
    return [
        b"[" * size,
        b'{"a":' * (size // 5),
        b"- " * size,
        b"seed: 0x" + b"f" * size,
        b"seed: " + b"1:" * (size // 2) + b"1",
        b"seed: " + b"1_" * (size // 2) + b"1.5",
        b"seed: " + b"9" * size,
        b"{" + keys + b"}",
        b"{" + keys + b',"k1":0,"z":1,"z":2}',
        b"{" + keys + b',"z":1,"z":2}',
        b"[" + b"1e999," * (size // 6) + b"1]",
        b"x" * size,
        b"? " * size,
        b'"' + b"\\u0000" * (size // 6) + b'"',
        b"a: &a [b]\n" + b"c: [*a]\n" * (size // 8),
        b"<<: {" + keys.replace(b":", b": ") + b"}",
    ]


def _kind(name: str, originals: Sequence[str], command: Sequence[str]) -> Kind:
    def prepare(arena: Arena) -> Maker:
        def make(random: Random, case: Path) -> list[str]:
            text = random.choice(originals)
            path = case / "input.file"
            path.write_bytes(spoilt_text(text, random, originals, arena.canary))
            return [*command, str(path)]

        return make

    return Kind(name, prepare)


CONFIGS = [recipes.text(name) for name in recipes.names()]
CONFIGS.append(dump_yaml(recipes.any_recipe("p-darts").to_data()))
GENOTYPES = [zoo.get(name).dumps() for name in ("pr-darts-dl2", "amoebanet-a")]
SETTING_TEXTS = [
    "limits: {kernel_min: 1, kernel_max: 3}\ninitial_pool: [conv 1x1]\n",
    dump_yaml(setting_to_data(SETTINGS["unrestricted"])),
]

KINDS = (
    _kind("config", CONFIGS, ["config"]),
    _kind("genotype", GENOTYPES, ["draw", "-o", "out.svg"]),
    _kind("setting", SETTING_TEXTS, ["space"]),
)
