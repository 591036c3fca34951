"""Packs the accuracies of NAS-Bench-201 into the file that prnas ships.

    python -m benchmarks.pack_nasbench201 nasbench201.csv.gz

The CSV file has a line for each cell: `arch`, its string, and a column in per cent for each name in
`COLUMNS` of `prnas.space.nasbench201.table`: e200 after 200 epochs, e12 after 12; test accuracy
(with 200 epochs the mean of all trials) and validation accuracy (one trial); on CIFAR-10, CIFAR-100
and ImageNet16-120. They are published as NATS-Bench (Dong et al., 2021). The checksum that is
printed belongs into `table.py`.
"""

import argparse
import csv
import gzip
import hashlib
import zlib
from decimal import Decimal
from pathlib import Path

from prnas.space.nasbench201 import table
from prnas.space.nasbench201.cells import NUM_CELLS, index_of_string

TARGET = Path(table.__file__).parent / "table.bin"


def pack(source: Path) -> bytes:
    """The packed table of a CSV file."""
    numbers = {name: [-1] * NUM_CELLS for name in table.COLUMNS}
    with gzip.open(source, "rt", encoding="ascii", newline="") as file:
        for row in csv.DictReader(file):
            index = index_of_string(row["arch"])
            for name, column in numbers.items():
                assert column[index] < 0, f"{row['arch']} is there twice"
                number = Decimal(row[name]) * table.UNITS
                assert number == int(number), row
                assert 0 <= number <= 100 * table.UNITS, row
                column[index] = int(number)
    assert all(min(column) >= 0 for column in numbers.values()), "a cell is missing"
    return table.packed(numbers)


def main() -> None:
    parser = argparse.ArgumentParser(description="Packs the accuracies of NAS-Bench-201.")
    parser.add_argument("source", type=Path, help="the .csv.gz file")
    data = pack(parser.parse_args().source)
    TARGET.write_bytes(data)
    checksum = hashlib.sha256(zlib.decompress(data)).hexdigest()
    print(f"{TARGET.name}: {len(data):,} bytes; CHECKSUM = {checksum!r}")


if __name__ == "__main__":
    main()
