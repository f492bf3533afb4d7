"""What people read in a chat, on a pager or in a mail: two templates (Jinja2), for a title and a body."""

from typing import Any

from alerts.alert import Alert, AlertStatus, printable, rfc3339
from alerts.delivery.receivers.alert_body import ReceiverContext, annotations_of, labels_of, page_url

TITLE = (
    "{% if alerts|length == 1 %}{{ alerts[0].status|upper }} {{ alerts[0].alertname }} "
    "{{ alerts[0].group or alerts[0].cluster }} ({{ alerts[0].severity }})"
    "{% else %}{{ firing|length }} firing, {{ resolved|length }} resolved: "
    "{{ alerts|map(attribute='alertname')|unique|join(', ') }}{% endif %}"
)
"""One line; of several alerts how many, and which."""
BODY = """\
{% for alert in alerts[:20] %}
{% if alerts|length > 1 %}
{{ alert.status|upper }} {{ alert.alertname }} {{ alert.group or alert.cluster }}: {{ alert.summary }}
{% else %}
{{ alert.summary }}
{% endif %}
{% if alerts|length == 1 and alert.status == "firing" %}
{% for name in ("cause", "culprit", "cost", "advice") if alert[name] %}
{{ name|capitalize }}: {{ alert[name] }}
{% endfor %}
{% for address in (alert.page_url, alert.runbook_url) if address %}
{{ address }}
{% endfor %}
{% endif %}
{% endfor %}
{% if alerts|length > 20 %}… and {{ alerts|length - 20 }} more
{% endif %}
"""
"""Of one alert all that is known; of several the first twenty, a line each."""
_CHARACTERS_MAX = 30_000


class Messages:
    """Fills the templates; no template reaches anything but what it is given."""

    def __init__(self, context: ReceiverContext, title: str = "", body: str = "") -> None:
        """Take the templates; "" means ours.

        Raises:
            ValueError: one is no template.
        """
        from jinja2 import StrictUndefined, TemplateError  # noqa: PLC0415 - only for those who use it
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

        self._context = context
        sandbox = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        )
        try:
            self._title, self._body = (sandbox.from_string(one) for one in (title or TITLE, body or BODY))
        except TemplateError as error:
            raise ValueError(f"not a template: {error}") from error

    def of(self, alerts: list[Alert]) -> tuple[str, str]:
        """Return title and body; a template that fails on these alerts gives way to ours."""
        try:
            return self._filled(alerts)
        except Exception as error:  # whatever a template may do: the alert is worth more than its form
            title, body = Messages(self._context)._filled(alerts)
            return title, f"{body}\n(The template failed: {type(error).__name__}: {error})"[:_CHARACTERS_MAX]

    def _filled(self, alerts: list[Alert]) -> tuple[str, str]:
        told = [self._facts(alert) for alert in alerts]
        given = {
            "alerts": told,
            "firing": [one for one in told if one["status"] == "firing"],
            "resolved": [one for one in told if one["status"] == "resolved"],
        }
        title = " ".join(self._title.render(given).split())
        return title[:_CHARACTERS_MAX], self._body.render(given).strip()[:_CHARACTERS_MAX]

    def _facts(self, alert: Alert) -> dict[str, Any]:
        """Return what a template can say of an alert; names from outside hold no control characters."""
        owner = self._context.owner_of(alert)
        texts = {"runbook_url": "", **labels_of(alert), **annotations_of(alert), "owner": owner}
        return {name: printable(text) for name, text in texts.items()} | {
            "id": alert.id,
            "status": "firing" if alert.status is AlertStatus.FIRING else "resolved",
            "starts_at": rfc3339(alert.starts_at_ms),
            "ends_at": "" if alert.ends_at_ms is None else rfc3339(alert.ends_at_ms),
            "page_url": page_url(alert, self._context.external_url),
        }
