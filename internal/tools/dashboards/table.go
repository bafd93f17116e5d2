package main

// board is one dashboard.
type board struct {
	// uid is its address in Grafana, and the name of its file.
	uid, title, about string
	rows              []row
}

// row is a titled group of panels.
type row struct {
	title  string
	panels []panel
}

// panel shows one or more queries.
type panel struct {
	title, about string
	// unit is one of Grafana's.
	unit string
	// number shows the last value rather than lines.
	number bool
	// stacked lines show a whole and its parts.
	stacked bool
	// bad is the value from which a number turns red; it is left out where any value is fine.
	bad     *float64
	queries []query
}

// query is one expression, and how its lines are called.
type query struct{ expr, legend string }

// lines is a panel of one query.
func lines(title, about, unit, expr, legend string) panel {
	return panel{title: title, about: about, unit: unit, queries: []query{{expr, legend}}}
}

// stacked is a panel of one query whose lines add up.
func stacked(title, about, unit, expr, legend string) panel {
	p := lines(title, about, unit, expr, legend)
	p.stacked = true
	return p
}

// number is a panel of one value, which is bad from a bound on.
func number(title, about, unit, expr string, bad float64) panel {
	p := lines(title, about, unit, expr, "")
	p.number, p.bad = true, &bad
	return p
}

// Units of Grafana.
const (
	share      = "percentunit"
	seconds    = "s"
	count      = "short"
	memory     = "bytes"
	aSecond    = "cps"
	deliveries = "reqps"
	tokens     = "suffix: tokens/s"
	money      = "suffix: /s"
)

// of selects a metric of the chosen installations, with more matchers if they are given.
func of(metric string, matchers ...string) string {
	s := metric + `{job=~"$job"`
	for _, m := range matchers {
		s += "," + m
	}
	return s + "}"
}

// rate is how fast a counter grows, over the range that Grafana finds fit.
func rate(metric string, matchers ...string) string {
	return "rate(" + of(metric, matchers...) + "[$__rate_interval])"
}

// by sums the rate of a counter by labels.
func by(labels, metric string, matchers ...string) string {
	return "sum by (" + labels + ") (" + rate(metric, matchers...) + ")"
}

// quantile is a quantile of a histogram, by labels if there are any.
func quantile(q, labels, histogram string, matchers ...string) string {
	if labels != "" {
		labels += ", "
	}
	return "histogram_quantile(" + q + ", " + by(labels+"le", histogram+"_bucket", matchers...) + ")"
}

// percentiles is a panel of three quantiles of a histogram.
func percentiles(title, about, histogram string) panel {
	p := panel{title: title, about: about, unit: seconds}
	for _, q := range []query{{"0.5", "half"}, {"0.95", "95 %"}, {"0.99", "99 %"}} {
		p.queries = append(p.queries, query{quantile(q.expr, "", histogram), q.legend})
	}
	return p
}
