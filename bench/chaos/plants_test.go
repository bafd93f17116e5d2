package main

import (
	"testing"

	"github.com/turnd/turnd/bench/rig"
)

// The game of a plant is long, and rarely played: that its edits fit the sources as they are is asked here.
func TestTheEditsOfEachPlantFitTheSources(t *testing.T) {
	t.Chdir("../..")
	for _, p := range plants {
		if _, err := rig.Overlay(t.TempDir(), p.name, p.edits...); err != nil {
			t.Error(err)
		}
	}
}
