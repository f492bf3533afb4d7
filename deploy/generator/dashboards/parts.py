"""What the dashboards share: variables, links, panels with their usual options, the colours of states."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = common_model.DataSourceRef(type_val="prometheus", uid="${datasource}")
WIDTH = 24

STATES = {
    "Stable": "green",
    "Empty": "#8e8e8e",
    "PreparingRebalance": "orange",
    "CompletingRebalance": "yellow",
    "Assigning": "light-blue",
    "Reconciling": "blue",
    "NotReady": "purple",
    "Dead": "#3d3d3d",
}
"""Every state of every type of group, and its colour.  Its number in the band is its place here, from 1."""

SEVERITIES = {"critical": "red", "warning": "orange", "info": "blue"}
BAD_FROM_1 = ((None, "green"), (1, "red"))
GOOD_FROM_1 = ((None, "red"), (1, "green"))
PLAIN = ((None, "blue"),)

Steps = Sequence[tuple[float | None, str]]


def new(
    uid: str, title: str, description: str, cluster_label: str, *, with_group: bool
) -> dashboard.Dashboard:
    """Return a dashboard with its variables and its links to the two others, to the page and the runbooks."""
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["groupwatch", "kafka"])
        .timezone("browser")
        .time("now-1h", "now")
        .refresh("30s")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_query("job", "Job", "label_values(groupwatch_build_info, job)"))
        .with_variable(
            _query("cluster", "Cluster", f'label_values(groupwatch_groups{{job=~"$job"}}, {cluster_label})')
        )
    )
    if with_group:
        inside = f'job=~"$job", {cluster_label}=~"$cluster"'
        made.with_variable(
            _query("group", "Group", f"label_values(groupwatch_group_members{{{inside}}}, group)", many=False)
        )
    page = _query("page", "Page", 'label_values(groupwatch_external_url_info{job=~"$job"}, url)', many=False)
    made.with_variable(page.hide(model.VariableHide.HIDE_VARIABLE))
    others = {
        "groupwatch-fleet": "Fleet",
        "groupwatch-group": "One group",
        "groupwatch-self": "groupwatch itself",
    }
    for other, name in others.items():
        if other != uid:
            made.link(
                _link(
                    name,
                    f"/d/{other}?${{__url_time_range}}&${{datasource:queryparam}}&${{cluster:queryparam}}",
                )
            )
    made.link(_link("Page", "${page}/"))
    made.link(_link("Runbooks", "${page}/runbooks/"))
    return made


class Panel(Protocol):
    """A panel that is being made."""

    def id(self, id_val: int) -> Any:
        """Give it its number."""
        ...

    def build(self) -> model.Panel:
        """Return it."""
        ...


def with_panels(made: dashboard.Dashboard, panels: Iterable[Panel]) -> model.Dashboard:
    """Return the dashboard with its panels, numbered in their order."""
    for number, panel in enumerate(panels, 1):
        made.with_panel(panel.id(number))
    return made.build()


def _link(title: str, url: str) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(title).type(model.DashboardLinkType.LINK).url(url).icon("external link")


def _query(name: str, label: str, query: str, *, many: bool = True) -> dashboard.QueryVariable:
    made = (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": query, "refId": name})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
    )
    return made.multi(True).include_all(True).all_value(".*") if many else made


def query(expr: str, legend: str = "", *, ref: str = "A", instant: bool = False) -> prometheus.Dataquery:
    """Return a query of a panel."""
    made = prometheus.Dataquery().ref_id(ref).expr(expr).legend_format(legend or "__auto").datasource(SOURCE)
    return made.instant().format(PromQueryFormat.TABLE) if instant else made


def steps(levels: Steps) -> dashboard.ThresholdsConfig:
    """Return thresholds: (from this value on, colour), the first without a value."""
    found = [model.Threshold(value=value, color=color) for value, color in levels]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(found)


def tile(
    title: str, description: str, expr: str, *, levels: Steps = PLAIN, unit: str = "short"
) -> stat.Panel:
    """Return a number with a colour."""
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .with_target(query(expr))
        .thresholds(steps(levels))
        .unit(unit)
        .color_mode(common_model.BigValueColorMode.BACKGROUND)
        .graph_mode(common_model.BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .span(4)
        .height(4)
    )


def graph(
    title: str,
    description: str,
    *queries: tuple[str, str],
    unit: str = "short",
    levels: Steps = (),
    stacked: bool = False,
    span: int = 12,
) -> timeseries.Panel:
    """Return lines over time, one set for each (expression, legend)."""
    made = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .unit(unit)
        .min(0)
        .fill_opacity(20 if stacked else 5)
        .show_points(common_model.VisibilityMode.NEVER)
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_model.TooltipDisplayMode.MULTI)
            .sort(common_model.SortOrder.DESCENDING)
        )
        .legend(
            common.VizLegendOptions()
            .display_mode(common_model.LegendDisplayMode.TABLE)
            .placement(common_model.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull", "max"])
        )
        .span(span)
        .height(8)
    )
    if stacked:
        made.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL))
    if levels:
        made.thresholds(steps(levels)).thresholds_style(
            common.GraphThresholdsStyleConfig().mode(common_model.GraphThresholdsStyleMode.LINE)
        )
    for ref, (expr, legend) in zip("ABCD", queries, strict=False):
        made.with_target(query(expr, legend, ref=ref))
    return made


def band_of(selector: str, by: str) -> str:
    """Return the expression of one series for each group, whose value is the number of its state."""
    parts = (
        f'(groupwatch_group_state{{{selector}, state="{state}"}} == 1) * {number}'
        for number, state in enumerate(STATES, 1)
    )
    return f"max by ({by}) ({' or '.join(parts)})"


def band(title: str, description: str, expr: str, legend: str, height: int) -> statetimeline.Panel:
    """Return the states of groups over time, each in its colour."""
    results = {
        str(number): model.ValueMappingResult(text=state, color=color, index=number)
        for number, (state, color) in enumerate(STATES.items(), 1)
    }
    return (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .with_target(query(expr, legend))
        .mappings([model.ValueMap(options=results)])
        .merge_values(True)
        .show_value(common_model.VisibilityMode.AUTO)
        .row_height(0.8)
        .legend(
            common.VizLegendOptions()
            .display_mode(common_model.LegendDisplayMode.LIST)
            .placement(common_model.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .span(WIDTH)
        .height(height)
    )


def firing_table(selector: str, cluster_label: str, height: int = 8) -> table.Panel:
    """Return the open alerts with links to their group and their runbook."""
    to_group = {
        "title": "The group",
        "url": "/d/groupwatch-group?var-group=${__data.fields.group:percentencode}"
        f"&var-cluster=${{__data.fields.{cluster_label}:percentencode}}&${{__url_time_range}}&${{datasource:queryparam}}",
    }
    to_runbook = {"title": "Its runbook", "url": "${page}/runbooks/${__value.raw}.md"}
    colours = [
        model.ValueMap(
            options={
                name: model.ValueMappingResult(text=name, color=color) for name, color in SEVERITIES.items()
            }
        )
    ]
    hidden = dict.fromkeys(("Time", "Value", "__name__", "instance", "job"), True)
    return (
        table.Panel()
        .title("Alerts now")
        .description("Open alerts; click a group for its dashboard, an alert for its runbook.")
        .datasource(SOURCE)
        .with_target(query(f"groupwatch_alerts_firing{{{selector}}} == 1", instant=True))
        .transformations([model_transformation("organize", {"excludeByName": hidden})])
        .override_by_name(
            "severity",
            [_property("mappings", colours), _property("custom.cellOptions", {"type": "color-background"})],
        )
        .override_by_name("group", [_property("links", [to_group])])
        .override_by_name("alertname", [_property("links", [to_runbook])])
        .no_value("Nothing fires.")
        .span(WIDTH)
        .height(height)
    )


def _property(name: str, value: Any) -> model.DynamicConfigValue:
    return model.DynamicConfigValue(id_val=name, value=value)


def model_transformation(name: str, options: dict[str, Any]) -> model.DataTransformerConfig:
    """Return one step between query and panel."""
    return model.DataTransformerConfig(id_val=name, options=options)
