"""One group: its states, rebalances, members and lag on one axis."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.generator.dashboards.parts import (
    BAD_FROM_1,
    PLAIN,
    band,
    band_of,
    firing_table,
    graph,
    new,
    tile,
    with_panels,
)


def group(c: str) -> Dashboard:
    """Return the dashboard of one group."""
    of = f'job=~"$job", {c}=~"$cluster", group="$group"'
    rebalances = "groupwatch_group_rebalances_total"
    made = new(
        "groupwatch-group",
        "groupwatch: one group",
        "One consumer group: states, rebalances by cause, members, lag.",
        c,
        with_group=True,
    )
    panels = (
        tile(
            "Alerts",
            "Open alerts of this group.",
            f"sum(groupwatch_alerts_firing{{{of}}}) or vector(0)",
            levels=BAD_FROM_1,
        ),
        tile(
            "In this state for",
            "Since the group entered its state.",
            f"time() - max(groupwatch_group_state_changed_timestamp_seconds{{{of}}})",
            levels=PLAIN,
            unit="s",
        ),
        tile("Members", "Members of the group.", f"max(groupwatch_group_members{{{of}}})"),
        tile(
            "Generation",
            "Generation of a classic group, epoch of the others.",
            f"max(groupwatch_group_generation{{{of}}})",
        ),
        tile(
            "Rebalances",
            "In this time, of all causes.",
            f"sum(increase({rebalances}{{{of}}}[$__range]))",
            levels=((None, "green"), (5, "orange"), (10, "red")),
        ),
        tile("Lag", "Records that wait, in all topics.", f"sum(groupwatch_group_lag{{{of}}})"),
        band("State", "The coordinator's state of the group.", band_of(of, f"{c}, group"), "{{group}}", 5),
        firing_table(of, c, 6),
        graph(
            "Rebalances by cause",
            "Rebalances that started.",
            (f"sum by (cause) (increase({rebalances}{{{of}}}[$__rate_interval]))", "{{cause}}"),
            stacked=True,
        ),
        graph(
            "Members and generation",
            "A generation that rises without members that change is a storm.",
            (f"max(groupwatch_group_members{{{of}}})", "members"),
            (
                f"max(groupwatch_group_generation{{{of}}}) - min(min_over_time(groupwatch_group_generation{{{of}}}[$__range]))",
                "generations in this time",
            ),
        ),
        graph(
            "Lag in records",
            "Records that wait, by topic.",
            (f"sum by (topic) (groupwatch_group_lag{{{of}}})", "{{topic}}"),
        ),
        graph(
            "Lag in time",
            "Age of the oldest record that waits, by topic.",
            (f"max by (topic) (groupwatch_group_lag_seconds{{{of}}})", "{{topic}}"),
            unit="s",
        ),
    )
    return with_panels(made, panels)
