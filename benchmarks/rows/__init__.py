"""One module per row of the table: `tasks(quick)` says what to measure, `lines(results)` what came of it."""

from benchmarks.rows import growth, parked, resume, steps, twice, wake

ROWS = (steps, growth, parked, resume, wake, twice)
