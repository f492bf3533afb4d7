"""All that the product reports to people: rules, alerts, delivery and metrics.  Independent of Spark."""
