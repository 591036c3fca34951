"""How the trainings of a fit vary and weigh images: by facts about them, with reasons."""

from prnas.fitting.plan import Task

UNEVEN = 1.5  # Classes of which one is so many times as large as another are weighed.
FEW_OF_CLASS = 100  # Training images of a class: with fewer, images are blended as well.
MANY = 20_000  # Training images: with more, there is less need to make variants of them.


def augmentation(task: Task, size: int) -> tuple[dict[str, object], list[tuple[str, str]]]:
    """Keys of a training's config that vary and weigh images, and why they are so."""
    facts = task.facts
    few_of_class, most = min(facts.class_sizes), max(facts.class_sizes)
    values: dict[str, object] = {}
    lines: list[tuple[str, str]] = []
    if facts.like_letters:
        lines.append(
            (
                "augment",
                f"shifted by up to {_pixels(size // 8)}, never flipped: they may be letters or "
                "digits",
            )
        )
    elif task.train > MANY:
        lines.append(("augment", "flipped, shifted, a square cut out: enough for so many images"))
    else:
        values |= {"data.rand_augment": 1, "data.rand_magnitude": 7}
        words = "flipped, shifted, a square cut out, and changed by RandAugment"
        if facts.channels == 3:
            values["data.color_jitter"] = 0.2
            words += " and in their colours"
        lines.append(("augment", f"{words}: {task.train:,} images are not many"))
    if few_of_class < FEW_OF_CLASS and not facts.like_letters:
        values["training.mixup"] = 0.2
        lines.append(("mixup", f"images are blended: a class has only {few_of_class}"))
    if most >= UNEVEN * max(few_of_class, 1):
        values["training.class_weights"] = "balanced"
        lines.append(
            ("classes", f"weighed by how few images they have: from {few_of_class:,} to {most:,}")
        )
    return values, lines


def _pixels(number: int) -> str:
    return f"{number} pixel{'' if number == 1 else 's'}"
