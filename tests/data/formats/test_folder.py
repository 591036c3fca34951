"""Folders of images: what is read, in what order, and what is refused."""

import os
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from prnas.data import readers as rows_module
from prnas.data.contact_sheet import plain
from prnas.data.formats import folder as folder_module
from prnas.data.formats.folder import FolderOptions, read_folder
from prnas.data.image_files import endings, is_grey, read_picture, resized
from prnas.data.readers import FileReader, ImageSet
from prnas.io.errors import UserError
from tests.support.made_data import picture, picture_folder


def read(path: Path, **changes: object) -> tuple[ImageSet, list[str]]:
    said: list[str] = []
    options: dict[str, object] = {
        "size": 8,
        "test_share": 0.2,
        "skip_broken": False,
        "threads": 2,
        "fits": lambda size: True,
        "say": said.append,
    }
    return read_folder(path, FolderOptions(**(options | changes))), said  # pyright: ignore


def both(path: Path, **changes: object) -> list[tuple[ImageSet, list[str]]]:
    """In memory, and left in the files."""
    return [read(path, fits=lambda size, fits=fits: fits, **changes) for fits in (True, False)]


def refusal(path: Path, **changes: object) -> str:
    with pytest.raises(UserError) as caught:
        read(path, **changes)
    return str(caught.value)


def pixels(source: ImageSet) -> np.ndarray:
    return source.train.reader.read(np.arange(len(source.train.reader)))


def test_an_automatic_split_is_stratified_and_stays(tmp_path: Path) -> None:
    picture_folder(tmp_path, 10)
    (memory, said), (files, _) = both(tmp_path)
    assert said == []
    assert memory.class_names == ("cat", "dog")
    assert memory.train.reader.shape == (3, 8, 8)
    assert np.bincount(memory.train.labels).tolist() == [8, 8]
    assert np.bincount(memory.test.labels).tolist() == [2, 2]
    assert np.array_equal(pixels(memory), pixels(files))
    assert isinstance(files.train.reader, FileReader)
    assert isinstance(files.test.reader, FileReader)
    chosen = {path.relative_to(tmp_path).as_posix() for path in files.test.reader.paths}
    # The same wherever the folder lies, and in every release.
    assert chosen == {"cat/0.png", "cat/8.png", "dog/5.png", "dog/7.png"}


def test_parts_that_are_given(tmp_path: Path) -> None:
    picture_folder(tmp_path / "train", 3)
    picture_folder(tmp_path / "valid", 2)
    found, said = read(tmp_path)
    assert (len(found.train.labels), len(found.test.labels), said) == (6, 4, [])
    picture_folder(tmp_path / "test", 1)
    found, said = read(tmp_path)
    assert len(found.test.labels) == 2
    assert "'test' is the test part; not used: valid" in said[0]
    picture(tmp_path / "test" / "moose" / "1.png")
    assert "has the class 'moose', which" in refusal(tmp_path)


def test_classes_may_be_called_train_and_test(tmp_path: Path) -> None:
    for name in ("train", "test", "tram"):
        for number in range(3):
            picture(tmp_path / name / f"{number}.png")
    assert read(tmp_path)[0].class_names == ("test", "train", "tram")


def test_odd_names_links_and_other_files(tmp_path: Path) -> None:
    names = ["ä ö", "line\nbreak", "-x", "[red]", "e'\"$"]
    if os.name == "posix":
        names.append(os.fsdecode(b"\xff"))
    for name in names:
        for number in range(2):
            picture(tmp_path / name / "deep" / f"{number}.PNG", number)
    (tmp_path / "-x" / "notes.txt").write_text("hello")
    (tmp_path / "-x" / "Thumbs").write_text("hello")
    picture(tmp_path / "-x" / ".hidden.png")
    picture(tmp_path / ".hidden" / "1.png")
    (tmp_path / "-x" / "circle").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "-x" / "linked.png").symlink_to(picture(tmp_path.parent / "outside.png"))
    found, said = read(tmp_path)
    expected = sorted(names)
    assert found.class_names == tuple("\\xff" if "\udcff" in name else name for name in expected)
    assert "".join(found.class_names).encode()
    assert len(found.train.labels) + len(found.test.labels) == 2 * len(names) + 1
    assert "ignored 2 files that are not images" in said[0]
    (tmp_path / "-x" / "Thumbs").unlink()
    assert "ignored 1 file that is not an image (1 .txt)" in read(tmp_path)[1][0]
    picture(tmp_path / "astray.png")
    assert any(
        "ignored 1 file beside the classes' folders (astray.png)" in one
        for one in read(tmp_path)[1]
    )


def test_letters_that_the_font_of_contact_sheets_has_not() -> None:
    assert "".join(map(plain, "véhicule Å1 鳥")) == "vehicule A1 鳥"


@pytest.mark.parametrize("mode", ["L", "1"])
def test_grey_sets_have_one_channel_until_one_is_coloured(mode: str, tmp_path: Path) -> None:
    picture_folder(tmp_path, 3, mode)
    assert read(tmp_path)[0].train.reader.shape == (1, 8, 8)
    picture(tmp_path / "cat" / "coloured.png")
    assert read(tmp_path)[0].train.reader.shape == (3, 8, 8)


def test_broken_images_are_named_and_refused_or_skipped(tmp_path: Path) -> None:
    picture_folder(tmp_path, 6)
    (tmp_path / "cat" / "text.jpg").write_text("no image")
    cut = picture(tmp_path / "dog" / "cut.jpg", size=(200, 200))
    cut.write_bytes(cut.read_bytes()[:-3000])
    # That the JPEG is cut off shows only when it is decoded.
    for fits in (True, False):
        message = refusal(tmp_path, fits=lambda size, fits=fits: fits)
        assert "text.jpg cannot be read as an image: it is in no known image format" in message
        assert "data.broken=skip (of `prnas data`: --skip-broken)" in message
    found, said = read(tmp_path, skip_broken=True)
    assert len(found.train.labels) + len(found.test.labels) == 12
    assert said[0].startswith("skipped 2 broken images: ")
    assert "cut.jpg (" in said[0]
    assert "text.jpg (it is in no known image format)" in said[0]
    assert not (pixels(found) == 0).all((1, 2, 3)).any()
    streamed, said = read(tmp_path, skip_broken=True, fits=lambda size: False)
    assert said[0].startswith("skipped 1 broken image: ")
    (tmp_path / "cat" / "text.jpg").unlink()
    assert "cut.jpg cannot be read as an image" in refusal(tmp_path)
    rows = (part.reader for part in (streamed.train, streamed.test))
    with pytest.raises(UserError, match=r"cut\.jpg cannot be read"):
        _ = [one.read(np.arange(len(one))) for one in rows]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_images_of_too_many_pixels_are_refused_before_they_are_decoded(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    picture_folder(tmp_path, 3)
    limit = Image.MAX_IMAGE_PIXELS
    for side in (10_000, 100_000):  # Pillow would warn of the one, and refuse the other
        header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        parts = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
        bomb = b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
        (tmp_path / "cat" / "bomb.png").write_bytes(bomb)
        assert "too many" in refusal(tmp_path)
    assert limit == Image.MAX_IMAGE_PIXELS
    assert recwarn.list == []


def test_programs_are_no_images(tmp_path: Path) -> None:
    picture_folder(tmp_path, 3)
    assert ".eps" not in endings()
    assert {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".ppm"} <= endings()
    disguised = tmp_path / "cat" / "program.png"
    disguised.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nquit\n")
    assert "program.png cannot be read as an image" in refusal(tmp_path)


def test_pictures_are_upright_opaque_and_cut_from_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    seen = np.zeros((4, 8, 3), np.uint8)
    seen[:, 2:6] = 200
    Image.fromarray(seen).save(path)
    assert (read_picture(path, 4, 3) == 200).all()  # the outer quarters are cut off
    Image.new("RGBA", (4, 4), (9, 9, 9, 0)).save(path)
    assert (read_picture(path, 4, 3) == 255).all()
    Image.fromarray(np.full((4, 4), 0x8030, np.uint16)).save(path)
    assert is_grey(path)
    assert (read_picture(path, 4, 1) == 0x80).all()
    assert (read_picture(path, 4, 3) == 0x80).all()
    for mode in ("P", "LA", "CMYK"):
        name = tmp_path / ("x.tif" if mode == "CMYK" else "x.png")
        Image.new("RGB", (6, 6), (250, 0, 0)).convert(mode).save(name)
        assert read_picture(name, 4, 3).shape == (3, 4, 4)
        assert not is_grey(name)
    turned = np.zeros((4, 4, 3), np.uint8)
    turned[0] = 255  # the top row, which the orientation turns to the right side
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(turned).save(path, exif=exif)
    made = read_picture(path, 4, 3)
    assert (made[:, :, 3] == 255).all()
    assert (made[:, :, :3] == 0).all()
    Image.fromarray(np.ones((4, 4), np.float32)).save(tmp_path / "x.tif")
    with pytest.raises(UserError, match="32-bit"):
        is_grey(tmp_path / "x.tif")


def test_pictures_that_are_no_squares(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    seen = np.zeros((6, 8, 3), np.uint8)
    seen[1:5] = 200
    Image.fromarray(seen).save(path)
    made = read_picture(path, (4, 8), 3)  # height and width
    assert made.shape == (3, 4, 8)
    assert (made == 200).all()
    assert read_picture(path, (9, 4), 1).shape == (1, 9, 4)
    assert read_picture(path, (7, 5), 3).shape == (3, 7, 5)
    for size in (1, 3, 6, 7, 30):
        assert np.array_equal(read_picture(path, (size, size), 3), read_picture(path, size, 3))
    assert np.array_equal(read_picture(path, (6, 8), 3), seen.transpose(2, 0, 1))


def test_the_middle_square_is_cut_exactly() -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (31, 44, 3), np.uint8))
    for size in (8, 30, 31, 32):
        cut = image.resize((size, size), Image.Resampling.BILINEAR, box=(6.5, 0, 37.5, 31))
        assert np.array_equal(np.asarray(resized(image, size)), np.asarray(cut))


def test_transparency_is_white_in_grey_too(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    Image.new("RGBA", (4, 4), (9, 9, 9, 0)).save(path)
    assert (read_picture(path, 4, 1) == 255).all()
    Image.new("LA", (4, 4), (9, 0)).save(path)
    assert (read_picture(path, 4, 1) == 255).all()


def test_too_little_to_learn_from(tmp_path: Path) -> None:
    assert "at least two classes; it has 0" in refusal(tmp_path)
    picture(tmp_path / "cat" / "1.png")
    assert "it has 1" in refusal(tmp_path)
    (tmp_path / "dog").mkdir()
    assert "class 'cat' has one image only" in refusal(tmp_path)
    picture(tmp_path / "cat" / "2.png")
    assert "class 'dog' has no training image" in refusal(tmp_path)
    file = tmp_path / "cat" / "1.png"
    assert "no such folder" in refusal(file)
    for path in (tmp_path / "cat").iterdir():
        path.unlink()
    assert "holds no image files" in refusal(tmp_path)


def test_pipes_and_devices_are_no_images(tmp_path: Path) -> None:
    """Reading them might never end."""
    folder = picture_folder(tmp_path / "set")
    os.mkfifo(folder / "cat" / "pipe.png")
    (folder / "cat" / "zeros.png").symlink_to("/dev/zero")
    source, said = read(folder)
    assert len(source.train.reader) + len(source.test.reader) == 10
    assert any("ignored 2 files" in one for one in said)


def test_formats_that_unpack_without_a_bound_are_not_read(tmp_path: Path) -> None:
    assert not {".fits", ".fit", ".eps"} & endings()
    assert ".png" in endings()


def test_what_pillow_warns_of_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def warning(path: Path, size: int, channels: int) -> np.ndarray:
        warnings.warn("Tag data larger than file", stacklevel=1)
        return read_picture(path, size, channels)

    monkeypatch.setattr(folder_module, "read_picture", warning)
    monkeypatch.setattr(rows_module, "read_picture", warning)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for source, _ in both(picture_folder(tmp_path / "set")):
            pixels(source)
    assert not shown
