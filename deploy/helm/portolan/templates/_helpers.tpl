{{- define "portolan.name" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}

{{- define "portolan.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "portolan.name" .) }}
{{- end }}

{{- define "portolan.selector" -}}
app.kubernetes.io/name: portolan
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "portolan.labels" -}}
{{ include "portolan.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "portolan.autoscalerSelector" -}}
app.kubernetes.io/name: portolan-autoscaler
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "portolan.autoscalerLabels" -}}
{{ include "portolan.autoscalerSelector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The server blocks of the values as a Corefile. */}}
{{- define "portolan.corefile" -}}
{{- range $server := .Values.servers }}
{{- range $zone := $server.zones }}{{ $zone.scheme }}{{ $zone.zone }}:{{ $server.port | default 53 }} {{ end }}{
{{- range $plugin := $server.plugins }}
    {{ $plugin.name }}
    {{- with $plugin.parameters }} {{ . }}{{ end }}
    {{- with $plugin.configBlock }} {
{{ . | trim | indent 8 }}
    }
    {{- end }}
{{- end }}
}

{{ end }}
{{- end }}

{{- /* Seconds of lameduck, 0 without one. */}}
{{- define "portolan.lameduck" -}}
{{- $line := include "portolan.corefile" . | regexFind "lameduck +[^ \n]+" }}
{{- $seconds := $line | regexFind "^lameduck +[0-9]+s$" | regexFind "[0-9]+" }}
{{- if $line }}{{- if not $seconds }}
{{- fail "write lameduck in whole seconds, such as 10s: grace period and readiness probe of the pods follow from it" }}
{{- end }}{{- end }}
{{- $seconds | default "0" }}
{{- end }}

{{- /* Seconds that pods have to end: lameduck, 5 for queries under way, 15 to spare. */}}
{{- define "portolan.gracePeriod" -}}
{{- add (include "portolan.lameduck" .) 20 }}
{{- end }}

{{- /* Seconds between two looks at /ready: all that it takes for a failure are half of lameduck at the most, and 2 s each. */}}
{{- define "portolan.readinessPeriod" -}}
{{- $half := div (include "portolan.lameduck" .) 2 }}
{{- div $half .Values.readinessProbe.failureThreshold | min 2 | max 1 }}
{{- end }}

{{- /* Port 53 for a user that is not root takes the sysctl, which a pod in its node's network may not have: there it takes root. */}}
{{- define "portolan.podSecurityContext" -}}
{{- if .Values.podSecurityContext }}
{{- toYaml .Values.podSecurityContext }}
{{- else if .Values.hostNetwork -}}
runAsUser: 0
seccompProfile:
  type: RuntimeDefault
{{- else -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
sysctls:
  - name: net.ipv4.ip_unprivileged_port_start
    value: "53"
{{- end }}
{{- end }}

{{- /* Kubernetes hands an added capability to root alone (kubernetes/kubernetes#56374). */}}
{{- define "portolan.securityContext" -}}
{{- if .Values.securityContext }}
{{- toYaml .Values.securityContext }}
{{- else -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- if .Values.hostNetwork }}
  add: [NET_BIND_SERVICE]
{{- end }}
{{- end }}
{{- end }}
