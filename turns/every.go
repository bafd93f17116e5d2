package turns

import (
	"context"
	"time"
)

// every calls f each d until ctx ends. A call that takes longer than d makes the next one come at once.
func every(ctx context.Context, d time.Duration, f func(context.Context)) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f(ctx)
		}
	}
}
