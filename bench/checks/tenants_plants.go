package main

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/turnd/turnd/bench/rig"
)

// leakPlants are two leaks: a read that finds another tenant's turn before it is asked whose it is, and a list that forgets
// whose it is.
var leakPlants = []rig.Edit{
	{
		File: "turns/reads.go",
		Old:  "(UserTurn, []Reply, error) {\n\tkey := KeyOf(caller.Tenant, conversation)",
		New: "(UserTurn, []Reply, error) {\n\tif t, _ := s.store.FindTurn(ctx, KeyOf(\"house 1\", conversation), id); t.Seq > 0 {\n" +
			"\t\treturn UserTurn{}, nil, &Error{Code: CodeWrongState, Problem: \"is not yours\"}\n\t}\n\tkey := KeyOf(caller.Tenant, conversation)",
	},
	{File: "turns/sqlite/held.go", Old: "r.status = 'held' AND c.tenant = @tenant AND", New: "r.status = 'held' AND (1 OR c.tenant = @tenant) AND"},
}

// leaky are the methods that the plants are to be found in.
var leaky = []string{"OperatorService.ListHeldReplies", "TurnService.GetTurn"}

// plantLeaks asks everything of a build with leaks in it, which must be found where they are in each mode of authentication.
func (l *lab) plantLeaks(modes []string) error {
	overlay, err := rig.Overlay(l.dir, "leaks", leakPlants...)
	if err != nil {
		return err
	}
	bin := filepath.Join(l.dir, "turnd-leaky")
	if out, err := exec.CommandContext(l.ctx, "go", "build", "-overlay", overlay, "-o", bin, "./cmd/turnd").CombinedOutput(); err != nil {
		return fmt.Errorf("the build with leaks broke: %w: %s", err, out)
	}
	planted := *l
	planted.bin, planted.short = bin, true
	for _, auth := range modes {
		leaks, err := planted.askAll(l.sqlite("leaky-"+auth), auth, &tenantsSums{})
		l.procs = planted.procs
		if err != nil {
			return fmt.Errorf("the build with leaks, auth %s: %w", auth, err)
		}
		found := slices.Sorted(maps.Keys(leaks))
		fmt.Printf("planted, auth %s: %v\n", auth, leakError(leaks))
		if !slices.Equal(found, leaky) {
			return errors.Join(fmt.Errorf("auth %s: leaks were planted in %v and found in %v", auth, leaky, found), leakError(leaks))
		}
	}
	return nil
}
