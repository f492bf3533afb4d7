"""``make tables``: write the reference configuration, and the tables of alerts and metrics."""

from tests.tables.metrics import METRICS, with_metrics
from tests.tables.reference import with_options
from tests.tables.tables import REFERENCE, documents, with_rules, with_tables


def main() -> None:
    """Write what follows from the rules' declarations and the heads of their runbooks."""
    REFERENCE.write_text(with_options(with_rules(REFERENCE.read_text())))
    METRICS.write_text(with_metrics(METRICS.read_text()))
    for document in documents():
        document.write_text(with_tables(document))


if __name__ == "__main__":
    main()
