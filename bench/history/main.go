// Command history builds requests from generated histories and has an independent validator judge them.
//
// A history is a path of user turns and replies as a store gives it, with whatever happens to conversations: calls that
// nobody answered, replies that failed, thoughts of another model, text that is no text. Each is built for all wires and
// in several windows by the service's own builder, twice, and once more from what a store would have kept. What comes of it
// is a body that package arrays finds nothing wrong with and that says what was said, or a typed error with a reason.
//
// SEED=n plays other histories; the same seed plays the same. BUILDS=n bounds the run (a million, 20,000 with SHORT=1).
// HISTORY=n plays one history of a seed and prints it; EACH=1 goes on
// after a failure and shows one of each kind. The check checks itself: each planted error must be caught, and each
// kind of history must have been made. It ends in one line of verdict.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	seed, err1 := number("SEED", 1)
	builds, err2 := number("BUILDS", defaultBuilds())
	only, err3 := number("HISTORY", -1)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			fmt.Println("FAIL history", err)
			os.Exit(1)
		}
	}
	if only >= 0 {
		fmt.Print(show(newMaker(seed, only).history(only)))
	}
	r := &run{seed: seed, builds: builds, only: only, each: os.Getenv("EACH") != "", begun: time.Now()}
	if problem := r.play(); problem != "" {
		fmt.Println("FAIL history", problem)
		os.Exit(1)
	}
	fmt.Println("PASS history", r.figures())
}

func defaultBuilds() int64 {
	if os.Getenv("SHORT") != "" {
		return 20_000
	}
	return 1_000_000
}

func number(name string, otherwise int64) (int64, error) {
	text := os.Getenv(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s must be a whole number", name)
	}
	return n, nil
}
