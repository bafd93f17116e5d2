package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Environment is what the standard OTEL_ variables say, as far as turnd itself acts on it. Where collectors are and how they
// are reached, the exporters read from the same variables; here they are only checked, since what can't be read there is
// passed over, and may be shown.
type Environment struct {
	// Disabled is OTEL_SDK_DISABLED: nothing is measured or traced.
	Disabled bool
	// Traces and Metrics say that they are to be sent by OTLP.
	Traces, Metrics bool
	// Sampler is OTEL_TRACES_SAMPLER, empty if unset, and Ratio its argument.
	Sampler string
	Ratio   float64
	// TraceProtocol and MetricProtocol are "grpc" or "http/protobuf".
	TraceProtocol, MetricProtocol string
	// TraceEndpoint and MetricEndpoint say that an address is set; without one it is a collector on this machine, in the clear.
	TraceEndpoint, MetricEndpoint bool
	// Propagate says that the trace contexts of callers are taken.
	Propagate bool
	// Queue bounds the spans that wait to be sent, Batch those that are sent at once, Delay is how long one waits at most, and
	// ExportTime how long sending may take.
	Queue, Batch      int
	Delay, ExportTime time.Duration
	// Interval and PushTime are how often metrics are pushed, and how long that may take.
	Interval, PushTime time.Duration
}

// Words of the variables.
const (
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"

	exporterOTLP       = "otlp"
	exporterPrometheus = "prometheus"
	exporterNone       = "none"
)

// maxQueue bounds OTEL_BSP_MAX_QUEUE_SIZE: spans of a few KiB each are kept in memory.
const maxQueue = 65536

// ReadEnvironment reads the variables. Its error has a line for each that can't be taken, without its value: one may hold a
// key under a mistyped name.
func ReadEnvironment(get func(string) string) (Environment, error) {
	v := variables{get: get}
	e := Environment{
		Disabled:  v.flag("OTEL_SDK_DISABLED"),
		Propagate: v.propagators(),
		Queue:     v.number("OTEL_BSP_MAX_QUEUE_SIZE", 2048, maxQueue),
		Batch:     v.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, maxQueue),
		Delay:     v.millis("OTEL_BSP_SCHEDULE_DELAY", 5*time.Second), ExportTime: v.millis("OTEL_BSP_EXPORT_TIMEOUT", 30*time.Second),
		Interval: v.millis("OTEL_METRIC_EXPORT_INTERVAL", time.Minute), PushTime: v.millis("OTEL_METRIC_EXPORT_TIMEOUT", 30*time.Second),
	}
	e.Batch = min(e.Batch, e.Queue)
	e.TraceEndpoint, e.TraceProtocol = v.exporter("TRACES_")
	e.MetricEndpoint, e.MetricProtocol = v.exporter("METRICS_")
	traces := v.list("OTEL_TRACES_EXPORTER", exporterOTLP, exporterNone)
	e.Traces = slices.Contains(traces, exporterOTLP) || traces == nil && e.TraceEndpoint
	metrics := v.list("OTEL_METRICS_EXPORTER", exporterOTLP, exporterPrometheus, exporterNone)
	e.Metrics = slices.Contains(metrics, exporterOTLP) || metrics == nil && v.text("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") != ""
	e.Sampler, e.Ratio = v.sampler()
	return e, errors.Join(v.problems...)
}

// variables reads variables and gathers what is wrong with them.
type variables struct {
	get      func(string) string
	problems []error
	checked  map[string]bool
}

func (v *variables) text(name string) string { return strings.TrimSpace(v.get(name)) }

// wrong notes a problem, once for each variable.
func (v *variables) wrong(name, problem string) {
	if v.checked == nil {
		v.checked = map[string]bool{}
	}
	if !v.checked[name] {
		v.checked[name] = true
		v.problems = append(v.problems, fmt.Errorf("%s: %s", name, problem))
	}
}

func (v *variables) flag(name string) bool {
	switch text := v.text(name); strings.ToLower(text) {
	case "", "false":
		return false
	case "true":
		return true
	}
	v.wrong(name, "must be true or false")
	return false
}

func (v *variables) number(name string, unset, most int) int {
	text := v.text(name)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		v.wrong(name, fmt.Sprintf("must be a number from 1 to %d", most))
		return unset
	}
	return n
}

// maxMillis is a day: what takes longer is a mistake.
const maxMillis = 24 * 60 * 60 * 1000

func (v *variables) millis(name string, unset time.Duration) time.Duration {
	text := v.text(name)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxMillis {
		v.wrong(name, fmt.Sprintf("must be milliseconds, from 1 to %d", maxMillis))
		return unset
	}
	return time.Duration(n) * time.Millisecond
}

// list reads words with commas between them, nil if unset.
func (v *variables) list(name string, allowed ...string) (words []string) {
	text := v.text(name)
	if text == "" {
		return nil
	}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if !slices.Contains(allowed, word) {
			v.wrong(name, "must be of "+strings.Join(allowed, ", "))
		}
		words = append(words, word)
	}
	return words
}

// propagators reads in which form callers may say what trace they belong to. Baggage is of no use here and is passed over.
func (v *variables) propagators() bool {
	words := v.list("OTEL_PROPAGATORS", "tracecontext", "baggage", exporterNone)
	return words == nil || slices.Contains(words, "tracecontext")
}

// sampler reads which traces are kept.
func (v *variables) sampler() (name string, ratio float64) {
	const variable, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	name, ratio = strings.ToLower(v.text(variable)), 1
	known := []string{samplerOn, samplerOff, samplerRatio, samplerParent + samplerOn, samplerParent + samplerOff, samplerParent + samplerRatio}
	if name != "" && !slices.Contains(known, name) {
		v.wrong(variable, "must be one of "+strings.Join(known, ", "))
	}
	if text := v.text(argument); text != "" && strings.HasSuffix(name, samplerRatio) {
		parsed, err := strconv.ParseFloat(text, 64)
		if err != nil || !(parsed >= 0 && parsed <= 1) {
			v.wrong(argument, "must be a number from 0 to 1")
		}
		ratio = parsed
	}
	return name, ratio
}

// exporter checks how a signal's collector is reached, each setting its own or that of all signals.
func (v *variables) exporter(signal string) (endpoint bool, protocol string) {
	const all = "OTEL_EXPORTER_OTLP_"
	protocol = protocolHTTP
	for _, prefix := range []string{all, all + signal} {
		endpoint = v.endpoint(prefix+"ENDPOINT") || endpoint
		if words := v.list(prefix+"PROTOCOL", protocolGRPC, protocolHTTP); words != nil {
			protocol = words[0]
		}
		v.list(prefix+"COMPRESSION", "gzip", "none")
		v.flag(prefix + "INSECURE")
		v.millis(prefix+"TIMEOUT", 0)
		v.headers(prefix + "HEADERS")
		v.certificates(prefix)
	}
	return endpoint, protocol
}

func (v *variables) endpoint(name string) bool {
	text := v.text(name)
	if text == "" {
		return false
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		v.wrong(name, "must be an http:// or https:// URL without a user, such as http://127.0.0.1:4318")
	}
	return true
}

// headers checks that all of them would be sent. The exporters pass over what they can't read, and show it.
func (v *variables) headers(name string) {
	text := v.text(name)
	if text == "" {
		return
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(value)
		if key = strings.TrimSpace(key); !found || err != nil || !isHeader(key) || strings.ContainsAny(value, "\r\n\x00") {
			v.wrong(name, "must be key=value pairs with commas between them, values percent-encoded")
			return
		}
	}
}

func isHeader(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// certificates checks the files by which a collector is trusted, and by which it trusts us.
func (v *variables) certificates(prefix string) {
	if name := prefix + "CERTIFICATE"; v.text(name) != "" {
		pem, err := os.ReadFile(v.text(name))
		if err != nil || !x509.NewCertPool().AppendCertsFromPEM(pem) {
			v.wrong(name, "must be a file with certificates in PEM")
		}
	}
	cert, key := v.text(prefix+"CLIENT_CERTIFICATE"), v.text(prefix+"CLIENT_KEY")
	switch {
	case (cert == "") != (key == ""):
		v.wrong(prefix+"CLIENT_CERTIFICATE", "goes with "+prefix+"CLIENT_KEY")
	case cert != "":
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			v.wrong(prefix+"CLIENT_CERTIFICATE", "must be a certificate in PEM, and "+prefix+"CLIENT_KEY its key")
		}
	}
}
