package main

import (
	"slices"
	"strings"

	"github.com/turnd/turnd/internal/instrument"
)

// series is what a scrape brings of one metric.
type series struct {
	// labels are the metric's own; each has job and instance beside them.
	labels []string
	// values are the words with which the catalog describes the values of a label, if it does.
	values map[string][]string
}

// vocabulary is what there is to ask for, by the name that Prometheus has for it.
type vocabulary map[string]series

// target are the labels that Prometheus gives to all that it scrapes.
var target = []string{"job", "instance"}

// foreign are metrics that libraries make and that panels may show; those of turnd's own are in the catalog.
var foreign = map[string][]string{
	"up": nil,
	"rpc_server_call_duration_seconds_bucket":     {"rpc_method", "rpc_system_name", "rpc_response_status_code", "le"},
	"rpc_server_call_duration_seconds_count":      {"rpc_method", "rpc_system_name", "rpc_response_status_code"},
	"db_client_operation_duration_seconds_count":  {"pgx_operation_type", "db_operation_name", "db_system_name"},
	"db_client_operation_duration_seconds_bucket": {"pgx_operation_type", "db_operation_name", "db_system_name", "le"},
	"pgxpool_acquired_connections":                {"db_client_connection_pool_name", "db_system_name"},
	"pgxpool_max_connections":                     {"db_client_connection_pool_name", "db_system_name"},
	"go_goroutines":                               nil,
	"process_cpu_seconds_total":                   nil,
	"process_resident_memory_bytes":               nil,
}

// newVocabulary is the catalog as a scrape shows it, and the metrics of libraries.
func newVocabulary() vocabulary {
	v := vocabulary{}
	for name, labels := range foreign {
		v[name] = series{labels: labels}
	}
	for _, m := range instrument.Catalog() {
		s := series{values: map[string][]string{}}
		for _, l := range m.Labels {
			name := underscores(l.Name)
			s.labels = append(s.labels, name)
			s.values[name] = strings.FieldsFunc(l.Values, func(r rune) bool { return strings.ContainsRune(" ,;:()", r) })
		}
		name := underscores(m.Name)
		if m.Unit == "s" {
			name += "_seconds"
		}
		switch m.Kind {
		case instrument.Counter, instrument.ObservedCounter:
			v[name+"_total"] = s
		case instrument.Histogram:
			v[name+"_sum"], v[name+"_count"] = s, s
			s.labels = append(slices.Clip(s.labels), "le")
			v[name+"_bucket"] = s
		default:
			v[name] = s
		}
	}
	return v
}

// underscores is how Prometheus writes a name of OpenTelemetry.
func underscores(name string) string { return strings.ReplaceAll(name, ".", "_") }
