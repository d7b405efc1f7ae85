"""An agent is of one team, which the planner cannot know: it took a team and an agent together for four times as rare as
they are, and gathered all of an agent's cards for the first forty of them. Docs: decisions/033.

Nothing is locked for it, and no row is longer.
"""

from django.db import migrations

STATISTICS = "CREATE STATISTICS approvals_whose (dependencies) ON team_id, agent_id FROM approvals_approval"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("approvals", "0016_half_time")]

    operations = [
        migrations.RunSQL(STATISTICS, "DROP STATISTICS approvals_whose"),
        migrations.RunSQL("ANALYZE approvals_approval", migrations.RunSQL.noop),
    ]
