package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// patience is how long a panel may take to show a fault, and an alert to fire.
const patience = 20 * time.Second

// watch asks the queries before and after each fault.
type watch struct {
	*house
	queries []*query
	changed int
	fired   map[string]bool
}

// reading is what a query gave.
type reading struct {
	// value is the sum of the lines that the expectation is about; there may be none.
	value float64
	any   bool
}

func (r reading) String() string {
	if !r.any {
		return "none"
	}
	return fmt.Sprintf("%.4g", r.value)
}

func (w *watch) read(q *query) (r reading, err error) {
	samples, err := w.prom.ask(w.ctx, q.expr)
	for _, s := range samples {
		if q.expectation.label == "" || s.labels[q.expectation.label] == q.expectation.value {
			r.value, r.any = r.value+s.value, true
		}
	}
	return r, err
}

// rose reports whether a value is one that somebody who looks would see rise.
func (e expectation) rose(before, after reading) bool {
	by := e.by
	if by == 0 {
		by = usual
	}
	return after.any && after.value > 0 && (!before.any || after.value > before.value*by)
}

// play plays all scenes. One that goes wrong does not keep the others from being played.
func (w *watch) play() error {
	var errs []error
	for _, s := range scenes {
		begun := time.Now()
		err := w.scene(s)
		if s.heal != nil {
			err = errors.Join(err, s.heal(w.house))
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			fmt.Println(err)
			errs = append(errs, err)
		}
		fmt.Printf("--- %s: %s, %.1fs\n", s.name, s.about, time.Since(begun).Seconds())
	}
	alerts, err := w.prom.loaded(w.ctx)
	w.alerts = alerts
	return errors.Join(append(errs, err)...)
}

func (w *watch) scene(s scene) error {
	if s.before != nil {
		if err := s.before(w.house); err != nil {
			return err
		}
	}
	if err := w.calms(s.alerts); err != nil {
		return err
	}
	mine, before, err := w.asked(s)
	if err != nil {
		return err
	}
	if err := s.play(w.house); err != nil {
		return err
	}
	// What a burst leaves is gone again soon, so that panels and alerts are looked at side by side.
	var fires error
	var looking sync.WaitGroup
	looking.Go(func() { fires = w.fires(s.alerts) })
	shows := w.shows(mine, before)
	looking.Wait()
	return errors.Join(shows, fires)
}

// calms waits until alerts that are to fire do not: what a fault before has left is not what this one does.
func (w *watch) calms(names []string) error {
	for _, name := range names {
		if w.fired[name] {
			continue
		}
		err := until(w.ctx, patience, name+", which fires before its fault, to be over", func() (bool, error) {
			firing, err := w.prom.firing(w.ctx)
			_, fires := firing[name]
			return !fires, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// asked are the queries that a scene is to change, and what they give before it.
func (w *watch) asked(s scene) (mine []*query, before []reading, err error) {
	for _, q := range w.queries {
		if q.expectation.scene != s.name {
			continue
		}
		r, err := w.read(q)
		if err != nil {
			return nil, nil, err
		}
		mine, before = append(mine, q), append(before, r)
	}
	return mine, before, nil
}

// shows waits until each query gives more than before.
func (w *watch) shows(mine []*query, before []reading) error {
	shown := make([]bool, len(mine))
	missing := 0
	err := until(w.ctx, patience, "panels", func() (bool, error) {
		missing = 0
		for i, q := range mine {
			if shown[i] {
				continue
			}
			after, err := w.read(q)
			if err != nil {
				return false, err
			}
			if shown[i] = q.expectation.rose(before[i], after); !shown[i] {
				missing++
				continue
			}
			w.changed++
			fmt.Printf("panel %q %s before=%s after=%s%s\n", q.panel, q.expr, before[i], after, q.expectation.line())
		}
		return missing == 0, nil
	})
	if missing == 0 {
		return err
	}
	var still []string
	for i, q := range mine {
		if !shown[i] {
			after, _ := w.read(q)
			still = append(still, fmt.Sprintf("%q before=%s after=%s%s %s", q.panel, before[i], after, q.expectation.line(), q.expr))
		}
	}
	return fmt.Errorf("%d of %d queries do not show it (%w): %s", missing, len(mine), err, strings.Join(still, "; "))
}

func (e expectation) line() string {
	if e.label == "" {
		return ""
	}
	return fmt.Sprintf(" %s=%q", e.label, e.value)
}

// fires waits until alerts fire.
func (w *watch) fires(names []string) error {
	for _, name := range names {
		if w.fired[name] {
			continue
		}
		err := until(w.ctx, patience, "the alert "+name, func() (bool, error) {
			firing, err := w.prom.firing(w.ctx)
			if err != nil {
				return false, err
			}
			a, ok := firing[name]
			if ok {
				fmt.Printf("alert %s firing %s: %s\n", name, said(a.Labels, "severity", "job", "instance", "endpoint", "model", "signal"), a.Annotations["summary"])
			}
			return ok, nil
		})
		if err != nil {
			return err
		}
		w.fired[name] = true
	}
	return nil
}
