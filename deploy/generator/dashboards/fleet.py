"""The fleet: what fires, which groups rebalance, what it costs."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.generator.dashboards.parts import (
    BAD_FROM_1,
    band,
    band_of,
    firing_table,
    graph,
    new,
    tile,
    with_panels,
)


def fleet(c: str) -> Dashboard:
    """Return the dashboard of all groups."""
    of = f'job=~"$job", {c}=~"$cluster"'
    rebalances, took = "groupwatch_group_rebalances_total", "groupwatch_rebalance_duration_seconds"
    unsettled = 'state=~"PreparingRebalance|CompletingRebalance|Assigning|Reconciling"'
    made = new(
        "groupwatch-fleet",
        "groupwatch: fleet",
        "All consumer groups: what fires, which rebalance, what it costs.",
        c,
        with_group=False,
    )
    alerts = f'groupwatch_alerts_firing{{{of}, silenced="false"'
    panels = (
        tile(
            "Critical",
            "Open critical alerts that nobody silenced.",
            f'sum({alerts}, severity="critical"}}) or vector(0)',
            levels=BAD_FROM_1,
        ),
        tile(
            "Warnings",
            "Open warnings that nobody silenced.",
            f'sum({alerts}, severity="warning"}}) or vector(0)',
            levels=((None, "green"), (1, "orange")),
        ),
        tile(
            "Silenced",
            "Open alerts that somebody silenced.",
            f'sum(groupwatch_alerts_firing{{{of}, silenced="true"}}) or vector(0)',
        ),
        tile("Groups", "Groups that groupwatch watches.", f"sum(groupwatch_groups{{{of}}})"),
        tile(
            "Rebalancing now",
            "Groups that rebalance at this moment.",
            f"sum(groupwatch_group_state{{{of}, {unsettled}}})",
            levels=((None, "green"), (1, "yellow"), (10, "red")),
        ),
        tile("Members", "Members of all groups.", f"sum(groupwatch_group_members{{{of}}})"),
        firing_table(of, c),
        band(
            "Groups that were not Stable",
            "State of each group that rebalanced in this time; a gap: not seen.",
            f"{band_of(of, f'{c}, group')} and on ({c}, group) sum by ({c}, group) (increase({rebalances}{{{of}}}[$__range])) > 0",
            "{{group}}",
            12,
        ),
        graph(
            "Rebalances by cause",
            "How many rebalances started, each minute.",
            (f"60 * sum by (cause) (rate({rebalances}{{{of}}}[$__rate_interval]))", "{{cause}}"),
            stacked=True,
        ),
        graph(
            "Groups that rebalance most",
            "The ten groups with most rebalances in this time.",
            (f"topk(10, sum by ({c}, group) (increase({rebalances}{{{of}}}[$__range])) > 0)", "{{group}}"),
        ),
        graph(
            "How long rebalances take",
            "From the start of a rebalance to Stable or Empty.",
            (
                f"histogram_quantile(0.5, sum by (le) (rate({took}_bucket{{{of}}}[$__rate_interval])))",
                "half of them",
            ),
            (
                f"histogram_quantile(0.99, sum by (le) (rate({took}_bucket{{{of}}}[$__rate_interval])))",
                "99 of 100",
            ),
            unit="s",
        ),
        graph(
            "Groups by state",
            "Groups in each state.",
            (f"sum by (state) (groupwatch_group_state{{{of}}})", "{{state}}"),
            stacked=True,
        ),
        graph(
            "Most lag, in records",
            "The ten groups that are most behind.",
            (f"topk(10, sum by ({c}, group) (groupwatch_group_lag{{{of}}}))", "{{group}}"),
        ),
        graph(
            "Most lag, in time",
            "The ten groups whose oldest waiting record is oldest.",
            (f"topk(10, max by ({c}, group) (groupwatch_group_lag_seconds{{{of}}}))", "{{group}}"),
            unit="s",
        ),
    )
    return with_panels(made, panels)
