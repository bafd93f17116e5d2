package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// expectation is what becomes of a panel.
type expectation struct {
	// scene is the fault after which the panel shows more.
	scene string
	// label and value name the line that rises; without them it is the sum of all.
	label, value string
	// by is by how much it must rise at least, as a factor; 0 is usual.
	by float64
}

// usual is by how much a value must rise at least.
const usual = 1.2

// expected has all panels, by title.
var expected = map[string]expectation{
	// Turns
	"Deliveries by result":             {scene: "everyday", label: "result", value: "new"},
	"Refused deliveries":               {scene: "refused"},
	"Repeats by layer":                 {scene: "replays", label: "layer", value: "client"},
	"Replies by status":                {scene: "everyday", label: "status", value: "complete"},
	"Abandoned replies by reason":      {scene: "cut"},
	"Time of a whole reply":            {scene: "slow", label: "status", value: "complete"},
	"Time to the first delta":          {scene: "slow"},
	"Time to the first delta by model": {scene: "slow", label: "model", value: "slow"},
	"The provider's part of it":        {scene: "slow", label: "gen_ai_request_model", value: "slow"},
	"In flight":                        {scene: "gated", label: "instance", value: "tried"},
	"Waiting for a place":              {scene: "gated", label: "instance", value: "tried"},
	"Turns in line":                    {scene: "gated"},
	"Followers":                        {scene: "gated", label: "instance", value: "tried"},
	"Time of a claim":                  {scene: "slow database"},
	"Provider calls by class":          {scene: "busy", label: "class", value: "throttled"},
	"Time of a provider call":          {scene: "slow", label: "gen_ai_request_model", value: "slow"},
	"Failed calls":                     {scene: "down", label: "error_type", value: "transient"},
	"Calls by method":                  {scene: "everyday"},
	"Calls by status":                  {scene: "refused"},
	"Time of a submission":             {scene: "slow database"},
	// Retry tokens
	"Retry rate in requests":             {scene: "busy"},
	"Retry rate in tokens":               {scene: "busy"},
	"Retry rate by model, in requests":   {scene: "busy", label: "model", value: "busy"},
	"Retry rate by model, in tokens":     {scene: "busy", label: "model", value: "busy"},
	"Retry rate by size, in requests":    {scene: "busy"},
	"Retry rate by size, in tokens":      {scene: "busy"},
	"Retry rate by layer, in requests":   {scene: "busy", label: "layer", value: "provider"},
	"Retry rate by layer, in tokens":     {scene: "busy", label: "layer", value: "provider"},
	"Cost of first calls and of retries": {scene: "busy", label: "try", value: "retry"},
	"Requests built again":               {scene: "cut", label: "result", value: "same"},
	"Wasted tokens by cause":             {scene: "cut"},
	"Wasted share of all tokens":         {scene: "cut"},
	"Cost of waste by cause":             {scene: "cut"},
	"Tokens by source":                   {scene: "cut", label: "source", value: "estimated"},
	"Saved tokens by layer":              {scene: "replays", label: "layer", value: "client"},
	"Saved cost by layer":                {scene: "replays", label: "layer", value: "client"},
	"Saved share":                        {scene: "replays"},
	"Tokens by direction":                {scene: "everyday", label: "direction", value: "input"},
	// Workers and store
	"Turns with two live replies": {scene: "no guards"},
	"Guards missing":              {scene: "no guards"},
	"Endings lost in an hour":     {scene: "no place"},
	"Held replies":                {scene: "unknown"},
	"Held replies over time":      {scene: "unknown"},
	"Renewals of leases":          {scene: "stopped", label: "result", value: "late"},
	"Sweeps":                      {scene: "killed"},
	"Oldest claim":                {scene: "gated"},
	"Spool":                       {scene: "no database", label: "instance", value: "tried"},
	"Time of a checkpoint":        {scene: "slow database"},
	"Follow lag":                  {scene: "followed elsewhere"},
	"Connections in use":          {scene: "slow database", label: "instance", value: "tried"},
	"Time of a statement":         {scene: "slow database"},
	"Breakers":                    {scene: "down", label: "endpoint", value: "down"},
	"Processor time":              {scene: "everyday", label: "instance", value: "calm"},
	"Memory":                      {scene: "gated", label: "instance", value: "tried", by: 1.05},
	"Goroutines":                  {scene: "gated", label: "instance", value: "tried", by: 1.1}, // many are kept for calls to come
	"Telemetry dropped":           {scene: "no collector"},
}

// expectedOf gives each query what is expected of it; a panel of which nothing is expected, and the reverse, is an error.
func expectedOf(queries []*query) error {
	left := maps.Clone(expected)
	var errs []error
	for _, q := range queries {
		e, ok := expected[q.panel]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("no fault is known that %q shows", q.panel))
		case !slices.ContainsFunc(scenes, func(s scene) bool { return s.name == e.scene }):
			errs = append(errs, fmt.Errorf("%q is to show %q, which is not played", q.panel, e.scene))
		}
		q.expectation = e
		delete(left, q.panel)
	}
	for title := range left {
		errs = append(errs, fmt.Errorf("there is no panel %q", title))
	}
	return errors.Join(errs...)
}
