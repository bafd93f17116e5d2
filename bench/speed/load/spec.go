package load

import "time"

// Spec says what a load does. It is passed as JSON on the command line.
type Spec struct {
	// Shape is the name of what each client does over and over.
	Shape string `json:"shape"`
	// Target is where: host:port, or the DSN of a database.
	Target string `json:"target"`
	// Targets are several, each with as many of the clients, instead of one.
	Targets []string `json:"targets,omitempty"`
	// Clients is how many do it at once; they share Conns connections, of which there is at least one.
	Clients int `json:"clients"`
	Conns   int `json:"conns"`
	// Warm goes before the Window that is measured.
	Warm   time.Duration `json:"warm"`
	Window time.Duration `json:"window"`
	// Rest is how long each client of a mix waits after each of its turns.
	Rest time.Duration `json:"rest,omitempty"`
	// Most is how many turns each client does at most, after which the window is over; 0 is for any number.
	Most int `json:"most,omitempty"`
	// Deltas is in how many pieces of PieceBytes a reply comes.
	Deltas int `json:"deltas"`
	// Watch are the processes whose CPU is read, by a name for each; children count with their parents.
	Watch map[string]int `json:"watch"`
	// Filled says what the database was filled with, to shapes that look for it.
	Filled *Filled `json:"filled,omitempty"`
}

// PieceBytes is the size of a delta's text.
const PieceBytes = 16

// Result is what a load found.
type Result struct {
	Turns   int     `json:"turns"`
	Seconds float64 `json:"seconds"`
	// P50 and P99 are of a turn's time, First of the time to its first piece, all in milliseconds. First is 0 for shapes
	// in which no piece comes first.
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	First float64 `json:"first_ms"`
	// CPU is in milliseconds a turn, by the names of Spec.Watch; the load itself is "load".
	CPU map[string]float64 `json:"cpu_ms"`
	// Error is why the run failed; then nothing else counts.
	Error string `json:"error,omitempty"`
}

// PerSecond is the throughput.
func (r Result) PerSecond() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Turns) / r.Seconds
}
