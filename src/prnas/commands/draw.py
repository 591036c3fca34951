"""`prnas draw`: both cells of a genotype as a picture."""

from pathlib import Path

from prnas.runs import named
from prnas.space import zoo


def run(name: str, out: Path | None) -> None:
    from prnas.commands.pictures import save_picture
    from prnas.drawing.cells import draw_genotype

    genotype = named.genotype(name)
    published = name in zoo.names()
    stem = name if published else Path(name).resolve().stem
    title = zoo.entry(name).title if published else stem
    save_picture(draw_genotype(genotype, title), out or Path(f"{stem}.svg"))
