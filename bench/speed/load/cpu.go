package load

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of times in /proc, which is the same on every Linux.
const tick = 10 * time.Millisecond

// cpuOf is what each watched process has used so far, with its children, those that have ended among them.
func cpuOf(watch map[string]int) (map[string]time.Duration, error) {
	used := map[string]time.Duration{}
	for name, pid := range watch {
		own, err := readStat(strconv.Itoa(pid))
		if err != nil {
			return nil, fmt.Errorf("CPU of %s: %w", name, err)
		}
		used[name] = own.self + own.ended
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		child, err := readStat(e.Name())
		if err != nil {
			continue // it ended meanwhile, and counts with its parent then
		}
		for name, pid := range watch {
			if child.parent == pid {
				used[name] += child.self
			}
		}
	}
	return used, nil
}

// stat is what is needed of /proc/PID/stat.
type stat struct {
	parent      int
	self, ended time.Duration // ended is of children that are gone
}

func readStat(pid string) (s stat, err error) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return s, err
	}
	// The name of the program stands in brackets and may hold anything, so counting starts behind the last one.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const parent, user, system, endedUser, endedSystem = 1, 11, 12, 13, 14
	if len(fields) <= endedSystem {
		return s, fmt.Errorf("/proc/%s/stat is short", pid)
	}
	var n [5]int64
	for i, at := range []int{parent, user, system, endedUser, endedSystem} {
		if n[i], err = strconv.ParseInt(string(fields[at]), 10, 64); err != nil {
			return s, err
		}
	}
	return stat{int(n[0]), time.Duration(n[1]+n[2]) * tick, time.Duration(n[3]+n[4]) * tick}, nil
}

// CPU is what processes use within a span, by name.
func CPU(ctx context.Context, watch map[string]int, span time.Duration) (map[string]time.Duration, error) {
	before, err := cpuOf(watch)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, span, nil); err != nil {
		return nil, err
	}
	after, err := cpuOf(watch)
	for name := range after {
		after[name] -= before[name]
	}
	return after, err
}
