"""groupwatch itself: whether it sees everything, in time, and tells everybody."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.generator.dashboards.parts import BAD_FROM_1, GOOD_FROM_1, graph, new, tile, with_panels


def itself(c: str) -> Dashboard:
    """Return the dashboard of the monitor."""
    job, of = 'job=~"$job"', f'job=~"$job", {c}=~"$cluster"'
    late = ((None, "green"), (10, "orange"), (60, "red"))
    undecodable, tried = "groupwatch_undecodable_total", "groupwatch_notifications_total"
    made = new(
        "groupwatch-self",
        "groupwatch: itself",
        "Whether groupwatch sees everything, in time, and tells everybody.",
        c,
        with_group=False,
    )
    panels = (
        tile(
            "Ready",
            "1 if every chosen cluster is shown whole and as it is now.",
            f"min(max by ({c}) (groupwatch_ready{{{of}}}))",
            levels=GOOD_FROM_1,
        ),
        tile(
            "Leaders",
            "Processes that watch each cluster; one is right.",
            f"max(sum by ({c}) (groupwatch_leader{{{of}}}))",
            levels=((None, "red"), (1, "green"), (2, "red")),
        ),
        tile(
            "Behind",
            "How late groupwatch judges.",
            f"max(min by ({c}) (groupwatch_watermark_delay_seconds{{{of}}}))",
            levels=late,
            unit="s",
        ),
        tile(
            "Waiting alerts",
            "Alerts that some receiver has not got yet.",
            f"sum(groupwatch_undelivered_alerts{{{job}}}) or vector(0)",
            levels=BAD_FROM_1,
        ),
        tile(
            "Not understood",
            "Records and lines in this time that could not be read.",
            f"sum(increase({undecodable}{{{of}}}[$__range])) or vector(0)",
            levels=((None, "green"), (1, "orange")),
        ),
        tile(
            "Configuration",
            "1 if the file was good when it was last read.",
            f"min(groupwatch_config_last_reload_successful{{{job}}})",
            levels=GOOD_FROM_1,
        ),
        graph(
            "Behind the end of each source",
            "How far behind the end of its topic each source is read.",
            (
                f"min by ({c}, source) (groupwatch_source_delay_seconds{{{of}}})",
                f"{{{{{c}}}}} {{{{source}}}}",
            ),
            unit="s",
            levels=late,
        ),
        graph(
            "Time since the newest event",
            "A source that is silent grows old without being late.",
            (
                f"time() - max by ({c}, source) (groupwatch_source_newest_timestamp_seconds{{{of}}})",
                f"{{{{{c}}}}} {{{{source}}}}",
            ),
            unit="s",
        ),
        graph(
            "Batches",
            "How long a batch takes.",
            (
                f"histogram_quantile(0.5, sum by ({c}, le) (rate(groupwatch_batch_duration_seconds_bucket{{{of}}}[$__rate_interval])))",
                f"{{{{{c}}}}}: half of them",
            ),
            (
                f"histogram_quantile(0.95, sum by ({c}, le) (rate(groupwatch_batch_duration_seconds_bucket{{{of}}}[$__rate_interval])))",
                f"{{{{{c}}}}}: 95 of 100",
            ),
            unit="s",
        ),
        graph(
            "Detection",
            "From when an alert's condition held until the alert was written.",
            (
                f"histogram_quantile(0.99, sum by (le) (rate(groupwatch_detection_seconds_bucket{{{job}}}[$__rate_interval])))",
                "99 of 100",
            ),
            (
                f"histogram_quantile(0.5, sum by (le) (rate(groupwatch_detection_seconds_bucket{{{job}}}[$__rate_interval])))",
                "half of them",
            ),
            unit="s",
        ),
        graph(
            "Events read",
            "Observations taken from each source, each second.",
            (f"sum by (source) (rate(groupwatch_events_total{{{of}}}[$__rate_interval]))", "{{source}}"),
        ),
        graph(
            "Not understood",
            "Records and lines that could not be read, by reason.",
            (
                f"sum by (source, reason) (increase({undecodable}{{{of}}}[$__rate_interval])) or vector(0)",
                "{{source}} {{reason}}",
            ),
        ),
        graph(
            "Agreement with the brokers",
            "Share of the brokers' own answers that agreed with the mirror.",
            (f"min by ({c}) (groupwatch_agreement_ratio{{{of}}})", f"{{{{{c}}}}}"),
            unit="percentunit",
        ),
        graph(
            "Disagreements",
            "Disagreements between mirror and brokers, and records that were gone before they were read.",
            (
                f"sum by (kind) (increase(groupwatch_divergence_total{{{of}}}[$__rate_interval])) or vector(0)",
                "{{kind}}",
            ),
            (
                f"sum by (topic) (increase(groupwatch_missed_records_total{{{of}}}[$__rate_interval]))",
                "missed of {{topic}}",
            ),
        ),
        graph(
            "Deliveries",
            "Attempts to tell each receiver, by outcome.",
            (
                f"sum by (receiver, outcome) (increase({tried}{{{job}}}[$__rate_interval]))",
                "{{receiver}} {{outcome}}",
            ),
        ),
        graph(
            "Oldest waiting alert",
            "How long an alert has waited for each receiver.",
            (f"max by (receiver) (groupwatch_oldest_undelivered_seconds{{{job}}})", "{{receiver}}"),
            unit="s",
            levels=((None, "green"), (300, "red")),
        ),
        graph(
            "CPU of the driver",
            "Of its Python; Spark's JVM and workers are not in it.",
            (f"rate(process_cpu_seconds_total{{{job}}}[$__rate_interval])", "{{instance}}"),
            unit="percentunit",
        ),
        graph(
            "Memory of the driver",
            "Of its Python; Spark's JVM and workers are not in it.",
            (f"process_resident_memory_bytes{{{job}}}", "{{instance}}"),
            unit="bytes",
        ),
    )
    return with_panels(made, panels)
