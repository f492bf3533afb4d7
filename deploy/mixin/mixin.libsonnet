// groupwatch as a monitoring mixin: rules and dashboards, with names of yours.
//
//   (import 'groupwatch/mixin.libsonnet') + { _config+:: { clusterLabel: 'kafka_cluster', job: 'kafka/groupwatch' } }
//
// `templates/` is generated (`make monitoring`); everything else is in the two texts that are replaced there.
{
  _config+:: {
    // As http.cluster_label in groupwatch's configuration.
    clusterLabel: 'cluster',
    // The label `job` that your Prometheus gives groupwatch.
    job: 'groupwatch',
    // false beside groupwatch's Alertmanager receiver, which sends these alerts itself.
    groupAlerts: true,
  },

  local named(text) = std.parseJson(
    std.strReplace(std.strReplace(text, '__CLUSTER__', $._config.clusterLabel), '__JOB__', $._config.job)
  ),
  local groups = named(importstr 'templates/groupwatch-rules.json').groups,
  local itself = named(importstr 'templates/groupwatch-self-rules.json').groups,
  local isRecorded(group) = group.name == 'groupwatch-recorded',

  prometheusAlerts+:: {
    groups+: (if $._config.groupAlerts then std.filter(function(one) !isRecorded(one), groups) else []) + itself,
  },
  prometheusRules+:: { groups+: std.filter(isRecorded, groups) },
  grafanaDashboards+:: {
    'groupwatch-fleet.json': named(importstr 'templates/groupwatch-fleet.json'),
    'groupwatch-group.json': named(importstr 'templates/groupwatch-group.json'),
    'groupwatch-self.json': named(importstr 'templates/groupwatch-self.json'),
  },
}
