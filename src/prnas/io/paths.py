"""Questions about paths, answered also for names that no file can have (too long, null bytes)."""

import os

exists, is_file, is_folder = os.path.exists, os.path.isfile, os.path.isdir
expanded = os.path.expanduser  # With `~` replaced by the home folder, where there is one.
