package badlink

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// Control opens stages for a client in another language, over HTTP:
//
//	GET  /scenarios         all scenarios
//	POST /stages?name=NAME  opens a stage and answers {"addr": "127.0.0.1:41"}
//	POST /up?addr=ADDR      brings the server of a stage back
//	GET  /report?addr=ADDR  the calls that came
//	POST /close?addr=ADDR   closes a stage
type Control struct {
	mu     sync.Mutex
	stages map[string]*Stage
}

// Handler serves the control. A stage that nobody closes ends with the program.
func (c *Control) Handler(ctx context.Context) http.Handler {
	c.stages = map[string]*Stage{}
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			got, err := answer(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(got)
		})
	}
	handle("GET /scenarios", func(*http.Request) (any, error) { return All() })
	handle("POST /stages", func(r *http.Request) (any, error) { return c.open(ctx, r.FormValue("name")) })
	handle("POST /up", c.with(func(s *Stage) (any, error) { return s.Addr, s.Up(ctx) }))
	handle("GET /report", c.with(func(s *Stage) (any, error) { return s.Report(), nil }))
	handle("POST /close", c.with(func(s *Stage) (any, error) { return s.Addr, s.Close() }))
	return mux
}

// maxStages bounds what one control has open in its life, which is one run of a test.
const maxStages = 1000

func (c *Control) open(ctx context.Context, name string) (any, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	for _, scenario := range all {
		if scenario.Name != name {
			continue
		}
		stage, err := Open(ctx, scenario)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.stages) >= maxStages {
			return nil, fmt.Errorf("no more than %d stages", maxStages)
		}
		c.stages[stage.Addr] = stage
		return map[string]string{"addr": stage.Addr}, nil
	}
	return nil, fmt.Errorf("%w as %q", errNoScenario, name)
}

func (c *Control) with(use func(*Stage) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		c.mu.Lock()
		stage := c.stages[r.FormValue("addr")]
		c.mu.Unlock()
		if stage == nil {
			return nil, fmt.Errorf("there is no stage at %q", r.FormValue("addr"))
		}
		return use(stage)
	}
}
