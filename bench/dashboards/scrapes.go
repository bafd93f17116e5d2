package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// scrapers are twice as many as a worker answers at once.
	scrapers = 8
	// scrapedFor is how long they go on.
	scrapedFor = 3 * time.Second
	// slowScrape is what no answer may take, whether it is yes or no; the machine is shared.
	slowScrape = 2 * time.Second
)

// scrapedByMany has many scrape one worker at once without a pause, while it serves its turns: each scrape is answered or told
// to come back, none is slow, and the turns do not feel it.
func (h *house) scrapedByMany() error {
	e := h.everyday
	time.Sleep(scrapedFor)
	quiet, err := e.taken()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(h.ctx, scrapedFor)
	defer cancel()
	var mu sync.Mutex
	answers := map[int]int{}
	var longest time.Duration
	err = each(scrapers, func(int) error {
		for ctx.Err() == nil {
			begun := time.Now()
			status, err := scrape(ctx, "http://"+h.workers["calm"].ready.Ops+"/metrics")
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			mu.Lock()
			answers[status]++
			longest = max(longest, time.Since(begun))
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return err
	}
	loaded, err := e.taken()
	if err != nil {
		return fmt.Errorf("a turn failed under scrapes: %w", err)
	}
	before, under := half(quiet), half(loaded)
	fmt.Printf("figure scrapes_answered=%d\nfigure scrapes_told_to_come_back=%d\nfigure longest_scrape_ms=%d\nfigure turns_ms_before=%d\nfigure turns_ms_under_scrapes=%d\n",
		answers[http.StatusOK], answers[http.StatusServiceUnavailable], longest.Milliseconds(), before.Milliseconds(), under.Milliseconds())
	switch others := len(answers); {
	case answers[http.StatusOK] == 0:
		return errors.New("no scrape was answered")
	case answers[http.StatusServiceUnavailable] == 0 && others > 1, others > 2:
		return fmt.Errorf("scrapes are answered with %v", answers)
	case longest > slowScrape:
		return fmt.Errorf("a scrape took %s", longest)
	case under > 5*before+100*time.Millisecond:
		return fmt.Errorf("half of the turns take %s under scrapes, and %s without", under, before)
	}
	return nil
}

func scrape(ctx context.Context, url string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// half is the median.
func half(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}
