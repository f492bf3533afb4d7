"""What the product says to people: rules, alerts, delivery and metrics.  Knows nothing of Spark."""
