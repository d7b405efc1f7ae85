"""Indexes for a million open cards beside five million settled ones: an ordered one for each filter of the inbox, one
for what was decided about the like, and the search's split into what is open and what is settled.

All are made and dropped while everything else goes on. Docs: decisions/033.
"""

import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.text
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

OPEN = Q(status__in=["held", "pending"])
SETTLED = Q(("status__in", ["held", "pending"]), _negated=True)
DUE = ["expires_at", "created_at", "id"]
LAST = ["-settled_at", "-id"]
SAID = models.Func(
    *("tool", "title", "description", "args"),
    template="(%(expressions)s)",
    arg_joiner=" || E'\\n' || ",
    output_field=models.TextField(),
)
ADDED = (
    *(
        models.Index(fields=[*by, *DUE], condition=OPEN, name=f"approvals_open_{name}")
        for name, by in (("agent", ["agent"]), ("tool", ["team", "tool"]), ("risk", ["team", "risk"]))
    ),
    *(
        models.Index(fields=[*by, *LAST], condition=SETTLED, name=f"approvals_settled_{name}")
        for name, by in (("agent", ["agent"]), ("tool", ["team", "tool"]), ("both", ["agent", "tool"]))
    ),
    *(
        django.contrib.postgres.indexes.GinIndex(
            django.contrib.postgres.indexes.OpClass(django.db.models.functions.text.Upper(SAID), name="gin_trgm_ops"),
            condition=condition,
            fastupdate=False,
            name=f"approvals_{name}_search",
        )
        for name, condition in (("open", OPEN), ("settled", SETTLED))
    ),
)
SEARCH = """
CREATE INDEX CONCURRENTLY approvals_search ON approvals_approval USING gin (
    upper(title) gin_trgm_ops, upper(description) gin_trgm_ops, upper(args) gin_trgm_ops, upper(tool) gin_trgm_ops
)
"""
# The planner keeps no statistics of what partial indexes hold, and takes the few runs of a sample for all there are.
STATISTICS = """
CREATE STATISTICS approvals_said ON
    (upper(tool || E'\\n' || title || E'\\n' || description || E'\\n' || args)) FROM approvals_approval;
ALTER TABLE approvals_approval ALTER run_id SET (n_distinct = -0.2);
"""
ARRAYS = ("wanted", "voted_by", "pools")


def without_pending_list(field: str) -> migrations.RunSQL:
    """In place: no index is made anew for it."""
    name = f"approvals_open_{field}"
    return migrations.RunSQL(
        [f"ALTER INDEX {name} SET (fastupdate = off)", f"SELECT gin_clean_pending_list('{name}'::regclass)"],
        f"ALTER INDEX {name} RESET (fastupdate)",
        [
            migrations.RemoveIndex("approval", name),
            migrations.AddIndex(
                "approval",
                django.contrib.postgres.indexes.GinIndex(fields=[field], condition=OPEN, fastupdate=False, name=name),
            ),
        ],
    )


def without_index(model: str, related_name: str, on_delete: object) -> migrations.AlterField:
    """The unique constraint on the approval and more has an index that serves as well."""
    field = models.ForeignKey(on_delete=on_delete, related_name=related_name, to="approvals.approval", db_index=False)
    return migrations.AlterField(model, "approval", field)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("approvals", "0009_first_answer")]

    operations = [
        *(AddIndexConcurrently("approval", index) for index in ADDED),
        migrations.RunSQL("DROP INDEX CONCURRENTLY approvals_search", SEARCH),
        migrations.RunSQL(
            STATISTICS,
            "DROP STATISTICS approvals_said; ALTER TABLE approvals_approval ALTER run_id RESET (n_distinct)",
        ),
        migrations.RunSQL("ANALYZE approvals_approval", migrations.RunSQL.noop),
        *(
            RemoveIndexConcurrently("approval", f"approvals_{name}")
            for name in ("open_in_order", "open_of_agent", "rejected")
        ),
        *(without_pending_list(field) for field in ARRAYS),
        without_index("revision", "revisions", django.db.models.deletion.PROTECT),
        without_index("cardview", "views", django.db.models.deletion.PROTECT),
        without_index("notice", "notices", django.db.models.deletion.CASCADE),
        AddIndexConcurrently(
            "auditevent",
            models.Index(
                fields=["actor", "-at", "-id"],
                condition=Q(("actor__startswith", "person:")),
                name="approvals_audit_by_person",
            ),
        ),
        RemoveIndexConcurrently("auditevent", "approvals_audit_by_actor"),
    ]
