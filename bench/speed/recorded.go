package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	// recordedFile has the reports that the documentation shows, by name; it is written by hand, from a quiet machine's.
	recordedFile = "docs/benchmarks.json"
	// mayFall is how much worse than recorded a figure may be before it has to be explained.
	mayFall = 0.10
)

// recorded are the figures of an earlier report of the same name, by their own. There need be none.
func recorded(name string) (map[string]Figure, error) {
	data, err := os.ReadFile(recordedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var reports map[string]Report
	if err := json.Unmarshal(data, &reports); err != nil {
		return nil, fmt.Errorf("%s: %w", recordedFile, err)
	}
	figures := map[string]Figure{}
	for _, f := range reports[name].Figures {
		figures[f.Name] = f
	}
	return figures, nil
}

// fell says whether a figure is worse than one that was recorded by more than it may be. Both are taken to their goals, since
// those of some are measured too.
func (f Figure) fell(from Figure) bool {
	if from.Goal == 0 || f.Goal == 0 || from.Value <= 0 { // to nothing there is no ratio: its goal alone counts
		return false
	}
	now, then := f.Value/f.Goal, from.Value/from.Goal
	if f.AtMost {
		return now > then*(1+mayFall)
	}
	return now < then*(1-mayFall)
}
