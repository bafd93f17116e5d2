// Command dashboards makes the dashboards of deploy/grafana, and holds rules and panels to what turnd measures.
//
// A dashboard is a table of panels in Go; Grafana's own builders make JSON of it, and its own strict reader must take that.
// Each expression is parsed with Prometheus' parser: a metric that turnd does not have, or a label that a metric does not
// have, is an error, because a panel or an alert that is written against one shows "nothing is wrong" for ever.
//
//	dashboards write DIR   writes DIR/*.json
//	dashboards check       demands that committed dashboards are current, and that rules and panels name what there is
package main
