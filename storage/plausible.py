"""Rows that no method can have stored: of a time to come, or with ends that are not an enclosure."""

import time

import numpy as np
import pyarrow as pa

from storage.layout import DAY


def too_late(rows: pa.Table) -> str:
    """Return the first row that was finished more than a day after the time of this machine, or "".

    The clock of another machine may be off by up to a day, or be in another time zone by mistake.

    Args:
        rows: Rows with the columns `point_id` and `finished_at`.

    Returns:
        A clause such as "row 0123... finished on 2099-01-01, but this machine's clock shows 2026-11-23".
    """
    now = time.time()
    finished = rows["finished_at"].cast(pa.int64()).to_numpy()
    late = np.flatnonzero(finished > (now + DAY) * 1e6)
    if not late.size:
        return ""
    shown = [_day(int(finished[late[0]])), _day(int(now * 1e6))]
    point = rows["point_id"][int(late[0])].as_py()
    return f"row {point} finished on {shown[0]}, but this machine's clock shows {shown[1]}"


def _day(microseconds: int) -> str:
    """Return the day of a time since 1970, also beyond the year 9999, which `datetime` lacks."""
    return str(np.datetime64(microseconds, "us").astype("datetime64[D]"))
