"""What the constraints checked, digests cover: see docs/decisions/038. Each table is locked for an instant, on its own."""

from django.db import migrations

CONSTRAINTS = {
    "checkpoint": ("checkpoints_checkpoint_not_negative", "checkpoints_checkpoint_reason"),
    "statepart": ("checkpoints_statepart_not_negative",),
    "historychunk": ("checkpoints_historychunk_not_empty",),
}


def without(model: str, names: tuple[str, ...]) -> migrations.SeparateDatabaseAndState:
    """Drop them in one statement, which can be run again."""
    drops = ", ".join(f"DROP CONSTRAINT IF EXISTS {name}" for name in names)
    return migrations.SeparateDatabaseAndState(
        state_operations=[migrations.RemoveConstraint(model, name) for name in names],
        database_operations=[migrations.RunSQL(f"ALTER TABLE checkpoints_{model} {drops}")],
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("checkpoints", "0001_initial")]

    operations = [
        migrations.RunSQL("SET lock_timeout = '5s'"),
        *(without(model, names) for model, names in CONSTRAINTS.items()),
        migrations.RunSQL("RESET lock_timeout"),
    ]
