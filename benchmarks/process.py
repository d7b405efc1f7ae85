"""What a process holds."""

import threading
from pathlib import Path


def resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def threads() -> int:
    return threading.active_count()
