"""What is inside a written report."""

import json
import re
from typing import Any


def data_of(page: str) -> Any:
    scripts = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert len(scripts) == 1
    return json.loads(scripts[0])
