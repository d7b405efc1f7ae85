"""What the database itself says of a row that the engine writes, as one call of a function in its migrations.

PostgreSQL parses the check constraints of a table anew for each statement that writes to it. Written out, those of what
a checkpoint writes took a third of the server's work (docs/decisions/038); a function is parsed once per connection.
"""

from django.db.models import BooleanField, CheckConstraint, Func, Q


def sound(table: str, *arguments: str | Q) -> CheckConstraint:
    """The constraint `{table}_sound`: the database's function `{table}_is_sound` is true of the row's `arguments`."""
    condition = Func(*arguments, function=f"{table}_is_sound", output_field=BooleanField())
    return CheckConstraint(condition=condition, name=f"{table}_sound")
