"""Sphinx's settings for `make docs`. It writes the generated pages before Sphinx reads."""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # where `docs.tools` is found

import prnas  # noqa: E402
from docs.tools.pages import write_pages  # noqa: E402

project = "prnas"
author = "the prnas developers"
version = release = prnas.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["tools"]
source_suffix = {".md": "markdown"}
nitpicky = True

# Markdown: links to headings are checked, and pages are read on GitHub as well.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
smartquotes = False  # `--set` is two hyphens.

# Docstrings: `x` is code. Types stand in the text, not in the signatures, which are short so.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 60
# Names of other projects, and our own that are no part of the public interface.
nitpick_ignore_regex = [("py:.*", ".*")]

html_theme = "furo"
html_title = f"prnas {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False
html_show_search_summary = False  # It would be read by requests, which files on disk refuse.
html_theme_options = {"navigation_with_keys": True}


def setup(app: Any) -> None:
    """Sphinx calls it before it reads anything."""
    app.connect("builder-inited", lambda app: write_pages(HERE / "generated"))
