"""What is inside a written report."""

import json
import re
from typing import Any


def data_of(page: str) -> Any:
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert len(found) == 1
    return json.loads(found[0])
