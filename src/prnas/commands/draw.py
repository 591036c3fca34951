"""`prnas draw`: both cells of a genotype as a picture."""

from pathlib import Path

from prnas.runs import named
from prnas.space import zoo


def run(name: str, out: Path | None) -> None:
    from prnas.commands.pictures import save_picture
    from prnas.drawing.cells import draw_genotype

    genotype = named.genotype(name)
    known = name in zoo.names()
    title = zoo.entry(name).title if known else Path(name).stem
    picture = draw_genotype(genotype, title)
    save_picture(picture, out or Path(f"{name if known else Path(name).stem}.svg"))
