package instrument

// Kind is what sort of instrument a metric is.
type Kind string

// The kinds. An observed counter is one that is read when it is collected.
const (
	Counter         Kind = "counter"
	ObservedCounter Kind = "observed counter"
	Gauge           Kind = "gauge"
	Histogram       Kind = "histogram"
)

// Metric describes one instrument.
type Metric struct {
	Name string
	Kind Kind
	// Unit is in UCUM, as OpenTelemetry has it.
	Unit string
	// About says what is counted, and when.
	About  string
	Labels []Label
	// Buckets are the upper bounds of a histogram's buckets.
	Buckets []float64
}

// Label is one dimension of a metric.
type Label struct {
	Name string
	// Values says which there are.
	Values string
}

// Names of turnd's own metrics. A scraper reads them with underscores, a unit behind some, and _total behind counters.
const (
	Submissions       = "turnd.submissions"
	Duplicates        = "turnd.duplicates"
	DuplicateTokens   = "turnd.duplicates.tokens"
	DuplicateCost     = "turnd.duplicates.cost"
	ProviderCalls     = "turnd.provider.calls"
	ProviderTokens    = "turnd.provider.tokens"
	ProviderCost      = "turnd.provider.cost"
	TokensWasted      = "turnd.tokens.wasted"
	CostWasted        = "turnd.cost.wasted"
	Requests          = "turnd.requests"
	RequestTokens     = "turnd.requests.tokens"
	RequestsRebuilt   = "turnd.requests.rebuilt"
	HistoryHealed     = "turnd.history.healed"
	Replies           = "turnd.replies"
	InFlight          = "turnd.in_flight"
	Held              = "turnd.held"
	InLine            = "turnd.in_line"
	Queued            = "turnd.queued"
	Followers         = "turnd.followers"
	OldestClaim       = "turnd.oldest_claim"
	Sweeps            = "turnd.sweeps"
	Renewals          = "turnd.lease.renewals"
	Spooled           = "turnd.spooled"
	EndingsLost       = "turnd.endings.lost"
	LiveDoubled       = "turnd.live_replies.doubled"
	GuardsBroken      = "turnd.guards.broken"
	BreakerState      = "turnd.breaker.state"
	FirstDelta        = "turnd.first_delta"
	FollowLag         = "turnd.follow.lag"
	ClaimTime         = "turnd.claim.duration"
	CheckpointTime    = "turnd.checkpoint.duration"
	ReplyTime         = "turnd.reply.duration"
	TelemetryDropped  = "turnd.telemetry.dropped"
	CertificateLeft   = "turnd.tls_certificate_left"
	DatabaseClockSkew = "turnd.database.clock_skew"
	BuildInfo         = "turnd.build_info"
)

// Labels that several metrics share.
var (
	try      = Label{"try", "first, or retry if a call came before it for this user turn and generation"}
	provider = Label{"provider", "vendors of the models file"}
	model    = Label{"model", "models of the models file, by the names that clients use"}
	byLayer  = Label{"layer", "who made the work again: client, redelivery, takeover or provider"}
	layer    = Label{"layer", "first, or who made the work again: client, redelivery, takeover or provider"}
	size     = Label{"size", "tokens of the request: le_1k, le_4k, le_16k, le_64k, le_256k or more"}
	cause    = Label{"cause", "class of the call, or reason of the reply's end, by which its tokens reached nobody"}
)

// Bounds of histograms, in seconds.
var (
	quick = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	long  = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640, 1280}
)

// Catalog returns all metrics of turnd's own and those of the GenAI conventions that it keeps, in the order in which the
// reference shows them.
func Catalog() []Metric {
	return append([]Metric{
		{Name: Submissions, Kind: Counter, Unit: "{delivery}", About: "Deliveries of user turns, by what each was.",
			Labels: []Label{{"result", "new, queued, attached, replayed or retried, or the reason of the error in lower case"}}},
		{Name: Duplicates, Kind: Counter, Unit: "{delivery}", Labels: []Label{byLayer},
			About: "Deliveries that repeated a turn, and calls that repeated a call, by the layer that repeated."},
		{Name: DuplicateTokens, Kind: Counter, Unit: "{token}", Labels: []Label{byLayer},
			About: "What repeated deliveries would have used if each had been a call of its own: input and output of the reply that they were answered with. Counted once the reply is over."},
		{Name: DuplicateCost, Kind: Counter, Unit: "{micro}", Labels: []Label{byLayer},
			About: "The same in millionths of the price table's currency."},
		{Name: ProviderCalls, Kind: Counter, Unit: "{call}", About: "Physical requests to providers, once each is over.",
			Labels: []Label{try, {"class", "how the call turned out"}, provider, model}},
		{Name: ProviderTokens, Kind: Counter, Unit: "{token}", About: "Tokens of provider calls; cache_read and cache_write are parts of input.",
			Labels: []Label{try, {"direction", "input, output, cache_read or cache_write"}, {"source", "reported, or estimated"}, provider, model}},
		{Name: ProviderCost, Kind: Counter, Unit: "{micro}", Labels: []Label{try, provider, model},
			About: "Cost of provider calls, in millionths of the price table's currency."},
		{Name: TokensWasted, Kind: Counter, Unit: "{token}", Labels: []Label{cause},
			About: "Tokens that were paid for and not delivered, by cause."},
		{Name: CostWasted, Kind: Counter, Unit: "{micro}", Labels: []Label{cause},
			About: "Cost of calls whose tokens were not delivered, in millionths of the price table's currency."},
		{Name: Requests, Kind: Counter, Unit: "{call}", Labels: []Label{layer, provider, model, size},
			About: "Physical requests to providers once each is over, by who made the work again and by the size of the request. The share of those that are not first is the retry rate in requests."},
		{Name: RequestTokens, Kind: Counter, Unit: "{token}", Labels: []Label{layer, provider, model, size},
			About: "Input and output tokens of those requests. The share of those that are not first is the retry rate in tokens, which is what the invoice shows."},
		{Name: RequestsRebuilt, Kind: Counter, Unit: "{request}", Labels: []Label{{"result", "same or changed"}},
			About: "Requests that were built again for a later attempt, by whether they came out the same to the byte; other bytes go under another idempotency key."},
		{Name: HistoryHealed, Kind: Counter, Unit: "{piece}", Labels: []Label{{"kind", "what was wrong"}},
			About: "What was put right in the histories of requests that were built, by kind; stored rows stay as they are."},
		{Name: Replies, Kind: Counter, Unit: "{reply}", About: "Replies that ended or were held, by status and reason.",
			Labels: []Label{{"status", "complete, abandoned or held"}, {"reason", "of an abandoned reply; empty otherwise"}}},
		{Name: ReplyTime, Kind: Histogram, Unit: "s", Buckets: long, Labels: []Label{{"status", "complete, abandoned or held"}},
			About: "Time from the claim of a reply to its end on the worker that ended it."},
		{Name: FirstDelta, Kind: Histogram, Unit: "s", Buckets: long, About: "Time from the arrival of a new turn to its reply's first delta.",
			Labels: []Label{provider, model}},
		{Name: FollowLag, Kind: Histogram, Unit: "s", Buckets: quick, Labels: []Label{{"from", "memory, bus or store"}},
			About: "How long text of a running reply was under way from the worker that got it to a follower's stream: there, or on another worker that read it from the bus or the store; by the clocks of both."},
		{Name: ClaimTime, Kind: Histogram, Unit: "s", Buckets: quick, About: "Time of the statement that claims a reply, with what waits before it."},
		{Name: CheckpointTime, Kind: Histogram, Unit: "s", Buckets: quick, About: "Time of a checkpoint of all running replies of a worker."},
		{Name: InFlight, Kind: Gauge, Unit: "{reply}", About: "Replies that this worker runs."},
		{Name: Queued, Kind: Gauge, Unit: "{delivery}", About: "Deliveries that wait on this worker for a place past --max-in-flight."},
		{Name: Followers, Kind: Gauge, Unit: "{stream}", About: "Streams that follow a reply on this worker."},
		{Name: Held, Kind: Gauge, Unit: "{reply}", About: "Held replies in the database, counted up to 10000."},
		{Name: InLine, Kind: Gauge, Unit: "{turn}", About: "Turns in the database that stand in line behind a reply of their conversation, counted up to 10000."},
		{Name: OldestClaim, Kind: Gauge, Unit: "s", About: "Age of the reply in the database that has been in flight for longest."},
		{Name: Sweeps, Kind: Counter, Unit: "{claim}", Labels: []Label{{"result", "taken_over, abandoned, held, completed, lost_race or failed"}},
			About: "Stale claims that this worker's sweeps resolved, by what became of each."},
		{Name: Renewals, Kind: Counter, Unit: "{renewal}", Labels: []Label{{"result", "on_time, late past half of the lease, failed, or lost when the worker had been declared dead"}},
			About: "Renewals of this worker's lease."},
		{Name: Spooled, Kind: Gauge, Unit: "{reply}", About: "Finished replies in this worker's spool, which the database has not taken."},
		{Name: EndingsLost, Kind: Counter, Unit: "{reply}", About: "Endings of replies that neither the database nor the spool took."},
		{Name: LiveDoubled, Kind: Gauge, Unit: "{turn}",
			About: "User turns with more than one live reply, among those whose replies run: there must never be one."},
		{Name: GuardsBroken, Kind: Gauge, Unit: "{index}", About: "Unique indexes that turnd's promises rest on and that are missing in the database or not valid."},
		{Name: DatabaseClockSkew, Kind: Gauge, Unit: "s", About: "How far the database's clock is before this worker's; turnd decides by the database's alone."},
		{Name: BreakerState, Kind: Gauge, Unit: "{state}", Labels: []Label{{"endpoint", "endpoints of the models file"}, {"model", "models of the models file, as the provider is asked for them"}},
			About: "Whether calls to a model at an endpoint are let through: 0 all (closed), 1 one as a trial (half-open), 2 none (open)."},
		{Name: TelemetryDropped, Kind: Counter, Unit: "{item}", Labels: []Label{{"signal", "spans or metrics"}},
			About: "Spans, and collections of metrics, that an exporter did not take in time; nothing waits for it."},
		{Name: BuildInfo, Kind: Gauge, Unit: "{build}", About: "Always 1: which build this worker is.",
			Labels: []Label{{"version", "of the build"}, {"commit", "that it was built from"}, {"go", "version of Go"}, {"schema", "version of the database's schema that it serves"}}},
		{Name: CertificateLeft, Kind: Gauge, Unit: "s", About: "Time until the certificate in force expires; less than 0 once it has."},
	}, genAI()...)
}
