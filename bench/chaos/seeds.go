package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// manySeeds plays one seed after the other and prints a table of them.
func manySeeds(ctx context.Context, first int64, n int, bin string) error {
	table := []string{
		"| seed | promises broken | faults | replies in flight | turns | duplicates | requests | generations | tokens wasted |",
		"|---|---|---|---|---|---|---|---|---|",
	}
	broken, caught := 0, 0
	for i := range n {
		r, err := oneSeed(ctx, usualGame(first+int64(i), os.Getenv("SHORT") != ""), bin, true)
		if err != nil {
			return err
		}
		broken, caught = broken+len(r.broken), caught+r.caught
		table = append(table, fmt.Sprintf("| %d | %d %s | %d | %d | %d | %d | %d | %d | %d |", r.seed, len(r.broken), pairs(r.promises()), sum(r.struck),
			r.caught, r.turns, r.figures["duplicates_sent"], r.requests, r.generated, sum(r.wasted)))
		fmt.Println(strings.Join(table, "\n"))
	}
	fmt.Printf("figure seeds=%d\nfigure promises_broken=%d\nfigure faults_in_flight=%d\n", n, broken, caught)
	if broken > 0 {
		return fmt.Errorf("%d promises were broken in %d seeds from %d", broken, n, first)
	}
	return nil
}
