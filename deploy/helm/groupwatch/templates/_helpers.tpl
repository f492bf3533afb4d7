{{/* The name of everything in this release: at most 50 characters, since Spark and others append to it. */}}
{{- define "groupwatch.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains "groupwatch" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-groupwatch" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods of this release; never changes between versions. */}}
{{- define "groupwatch.selector" -}}
app.kubernetes.io/name: groupwatch
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What selects the pod with the driver: the one that serves page and metrics. */}}
{{- define "groupwatch.driverSelector" -}}
{{ include "groupwatch.selector" . }}
app.kubernetes.io/component: driver
{{- end -}}

{{- define "groupwatch.labels" -}}
{{ include "groupwatch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "groupwatch.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "groupwatch.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "groupwatch.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* Annotations of the pod: a changed configuration or secret starts a new one. */}}
{{- define "groupwatch.podAnnotations" -}}
checksum/config: {{ toYaml .Values.config | sha256sum }}
checksum/secrets: {{ toYaml .Values.secrets.values | sha256sum }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "groupwatch.podLabels" -}}
{{ include "groupwatch.labels" . }}
{{- with .Values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The users are those of the images: groupwatch (10001) for one process, spark (185) on Spark. */}}
{{- define "groupwatch.podSecurityContext" -}}
{{- $user := ternary 185 10001 (eq .Values.mode "sparkApplication") -}}
{{- $ours := dict "runAsNonRoot" true "runAsUser" $user "runAsGroup" $user "fsGroup" $user
      "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- toYaml (mergeOverwrite $ours .Values.podSecurityContext) -}}
{{- end -}}

{{- define "groupwatch.securityContext" -}}
{{- $ours := dict "allowPrivilegeEscalation" false "privileged" false "readOnlyRootFilesystem" true
      "runAsNonRoot" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- toYaml (mergeOverwrite $ours .Values.securityContext) -}}
{{- end -}}

{{- define "groupwatch.args" -}}
- run
- --config
- /etc/groupwatch/groupwatch.yaml
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "groupwatch.env" -}}
- {name: HOME, value: /tmp}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "groupwatch.envFrom" -}}
{{- with .Values.secrets.existing }}
- secretRef: {name: {{ . }}}
{{- end }}
{{- if .Values.secrets.values }}
- secretRef: {name: {{ include "groupwatch.fullname" . }}}
{{- end }}
{{- end -}}

{{/* What driver and executors alike need: certificates, what values add, and a checkpoint on one volume for all. */}}
{{- define "groupwatch.sharedMounts" -}}
{{- if .Values.config.checkpoint_is_shared }}
{{ include "groupwatch.dataMount" . }}
{{- end }}
- {name: tmp, mountPath: /tmp}
{{- if .Values.secrets.files }}
- {name: secret-files, mountPath: /etc/groupwatch/secrets, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "groupwatch.sharedVolumes" -}}
{{- if .Values.config.checkpoint_is_shared }}
{{ include "groupwatch.dataVolume" . }}
{{- end }}
- name: tmp
  emptyDir: {sizeLimit: {{ .Values.tmpSizeLimit }}}
{{- with .Values.secrets.files }}
- name: secret-files
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "groupwatch.dataMount" -}}
- {name: data, mountPath: /var/lib/groupwatch}
{{- end -}}

{{- define "groupwatch.dataVolume" -}}
- name: data
{{- if .Values.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ .Values.persistence.existingClaim | default (include "groupwatch.fullname" .) }}
{{- else }}
  emptyDir: {}
{{- end }}
{{- end -}}

{{- define "groupwatch.driverMounts" -}}
- {name: config, mountPath: /etc/groupwatch/groupwatch.yaml, subPath: groupwatch.yaml, readOnly: true}
{{- if not .Values.config.checkpoint_is_shared }}
{{ include "groupwatch.dataMount" . }}
{{- end }}
{{ include "groupwatch.sharedMounts" . | trim }}
{{- end -}}

{{- define "groupwatch.driverVolumes" -}}
- name: config
  configMap: {name: {{ include "groupwatch.fullname" . }}}
{{- if not .Values.config.checkpoint_is_shared }}
{{ include "groupwatch.dataVolume" . }}
{{- end }}
{{ include "groupwatch.sharedVolumes" . | trim }}
{{- end -}}

{{/* What the server speaks. */}}
{{- define "groupwatch.scheme" -}}
{{- ternary "HTTPS" "HTTP" (not (empty .Values.config.http.certificate)) -}}
{{- end -}}

{{/* Whether a receiver tells Alertmanager, so that Prometheus must not: "true" or "". */}}
{{- define "groupwatch.tellsAlertmanager" -}}
{{- range .Values.config.receivers -}}
{{- if hasKey . "alertmanager" -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* /healthz says that the process is broken, /ready that a cluster is not watched; an outage of Kafka is only the latter. */}}
{{- define "groupwatch.probes" -}}
{{- $scheme := include "groupwatch.scheme" . -}}
startupProbe:
  httpGet: {path: /healthz, port: http, scheme: {{ $scheme }}}
  {{- toYaml .Values.probes.startup | nindent 2 }}
livenessProbe:
  httpGet: {path: /healthz, port: http, scheme: {{ $scheme }}}
  {{- toYaml .Values.probes.liveness | nindent 2 }}
readinessProbe:
  httpGet: {path: /ready, port: http, scheme: {{ $scheme }}}
  {{- toYaml .Values.probes.readiness | nindent 2 }}
{{- end -}}

{{- define "groupwatch.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* A setting's value as text: Helm would write 16000000 as 1.6e+07. */}}
{{- define "groupwatch.property" -}}
{{- ternary . (toJson .) (kindIs "string" .) | quote -}}
{{- end -}}

{{/* Refuses what the API server would take and the job could not use. */}}
{{- define "groupwatch.check" -}}
{{- if and (eq .Values.mode "sparkApplication") (not .Values.config.checkpoint_is_shared) (not (regexMatch "^[a-z][a-z0-9+.-]*://" (.Values.config.checkpoint | trimPrefix "file:"))) -}}
{{- fail "config.checkpoint is a local folder, and executors are pods of their own: name an object store or HDFS (s3a://bucket/groupwatch, hdfs://…), or set config.checkpoint_is_shared with a volume that many pods may write." -}}
{{- end -}}
{{- if and (eq .Values.mode "sparkApplication") .Values.config.checkpoint_is_shared (not .Values.persistence.enabled) -}}
{{- fail "config.checkpoint_is_shared needs a volume that driver and executors mount: set persistence.enabled." -}}
{{- end -}}
{{- if and (eq .Values.mode "sparkApplication") (hasKey (.Values.config.spark | default dict) "spark.master") -}}
{{- fail "config.spark sets spark.master, which the Spark operator decides: remove it." -}}
{{- end -}}
{{- with .Values.serviceMonitor -}}
{{- if and .enabled $.Values.config.http.users (not .authorization) (not .basicAuth) -}}
{{- fail "config.http.users asks for a login, and Prometheus has none: set serviceMonitor.authorization or serviceMonitor.basicAuth." -}}
{{- end -}}
{{- end -}}
{{- if has (.Values.config.http.host | default "127.0.0.1") (list "127.0.0.1" "localhost" "::1") -}}
{{- fail "config.http.host is the pod's own loopback address, so probes and the service would not reach it: write 0.0.0.0." -}}
{{- end -}}
{{- end -}}
