"""One check constraint for each table that the engine writes to, and no others: see docs/decisions/038.

Each table is locked on its own: for an instant to exchange its constraints, and not against its workers while the rows
are checked. A statement that gives up can be run again.
"""

from collections.abc import Iterator

from django.db import migrations, models
from django.db.migrations.operations.base import Operation

# The same values as in runs.states; tests/runs/test_states.py compares the two.
FUNCTIONS = """
CREATE OR REPLACE FUNCTION runs_head_is_sound(
    status varchar, reason varchar, detail text, lease timestamptz, epoch bigint
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE
        WHEN status = 'running' THEN lease IS NOT NULL AND epoch > 0 AND reason = ''
        WHEN lease IS NOT NULL THEN false
        WHEN status = 'suspended' THEN reason IN ('approval', 'timer', 'event', 'in_doubt', 'settling')
        WHEN status = 'blocked' THEN reason = '' AND detail <> ''
        ELSE reason = '' AND status IN ('queued', 'completed', 'failed', 'cancelled')
    END;
END $$;

CREATE OR REPLACE FUNCTION runs_step_is_sound(state varchar, settled boolean)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE WHEN settled THEN state IN ('done', 'failed', 'not_performed') ELSE state = 'intent' END;
END $$;

CREATE OR REPLACE FUNCTION runs_gate_is_sound(
    kind varchar, answered boolean, answered_at timestamptz, delivered_at timestamptz
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN kind IN ('approval', 'timer', 'event')
        AND answered = (answered_at IS NOT NULL)
        AND (answered OR delivered_at IS NULL);
END $$;

CREATE OR REPLACE FUNCTION runs_run_is_sound(kind varchar, resume_mode varchar, parent uuid, parent_seq integer)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN kind IN ('hosted', 'external')
        AND resume_mode IN ('hosted', 'workflow', 'poll', 'webhook')
        AND (parent IS NULL) = (parent_seq IS NULL);
END $$;
"""

# By model: the arguments in SQL and in Django, the constraints that go, and the fields that lose `>= 0`.
SOUND = {
    "runhead": (
        "runs_head",
        "status, reason, detail, lease, epoch",
        ("status", "reason", "detail", "lease", "epoch"),
        (
            "status_known",
            "lease_while_running",
            "reason_while_suspended",
            "blocked_says_why",
            "seq_sane",
            "epoch_claimed",
        ),
        {
            "schema": models.IntegerField(default=1),
            "turn": models.IntegerField(default=0),
            "rings": models.SmallIntegerField(default=0),
            "crashes": models.SmallIntegerField(default=0),
            "failures": models.SmallIntegerField(default=0),
            "deliveries": models.IntegerField(default=0),
        },
    ),
    "step": (
        "runs_step",
        "state, outcome IS NOT NULL",
        ("state", models.Q(outcome__isnull=False)),
        ("state_known", "outcome_when_settled"),
        {
            "turn": models.IntegerField(),
            "ordinal": models.IntegerField(help_text="The order of recording within the turn."),
            "generation": models.SmallIntegerField(default=0),
        },
    ),
    "gate": (
        "runs_gate",
        "kind, answer IS NOT NULL, answered_at, delivered_at",
        ("kind", models.Q(answer__isnull=False), "answered_at", "delivered_at"),
        ("kind_known", "answer_has_a_time", "delivers_an_answer"),
        {
            "turn": models.IntegerField(),
            "ordinal": models.IntegerField(),
            "generation": models.SmallIntegerField(default=0),
            "superseded": models.SmallIntegerField(default=0),
        },
    ),
    "run": (
        "runs_run",
        "kind, resume_mode, parent_id, parent_seq",
        ("kind", "resume_mode", "parent", "parent_seq"),
        ("kind_known", "resume_mode_known", "fork_has_a_checkpoint"),
        {"parent_seq": models.IntegerField(blank=True, null=True)},
    ),
}


def exchanges() -> Iterator[Operation]:
    """For each table: the old constraints for the new one, in one statement; then its rows are checked."""
    for model, (table, in_sql, arguments, names, fields) in SOUND.items():
        sound = f"{table}_sound"
        old = [f"{table}_{name}" for name in names] + [f"{table}_{name}_check" for name in fields]
        drops = ", ".join(f"DROP CONSTRAINT IF EXISTS {name}" for name in [*old, sound])
        condition = models.Func(*arguments, function=f"{table}_is_sound", output_field=models.BooleanField())
        yield migrations.SeparateDatabaseAndState(
            state_operations=[
                *(migrations.RemoveConstraint(model, f"{table}_{name}") for name in names),
                *(migrations.AlterField(model, name, field) for name, field in fields.items()),
                migrations.AddConstraint(model, models.CheckConstraint(condition=condition, name=sound)),
            ],
            database_operations=[
                migrations.RunSQL(
                    f"ALTER TABLE {table} {drops}, ADD CONSTRAINT {sound} CHECK ({table}_is_sound({in_sql})) NOT VALID"
                ),
                migrations.RunSQL(f"ALTER TABLE {table} VALIDATE CONSTRAINT {sound}"),
            ],
        )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0017_runs_of_agent")]

    operations = [
        migrations.RunSQL(FUNCTIONS),
        migrations.RunSQL("SET lock_timeout = '5s'"),
        *exchanges(),
        migrations.RunSQL("RESET lock_timeout"),
    ]
