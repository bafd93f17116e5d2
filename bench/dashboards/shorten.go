package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// hurry is by how much the times of the shipped rules are divided. None gets shorter than what a few scrapes need.
const (
	hurry    = 150
	shortest = 4 * time.Second
)

var (
	inExpression = regexp.MustCompile(`(\[|\boffset )(\d+)([smhd])\b`)
	asWait       = regexp.MustCompile(`(?m)^(\s+for: )(\d+)([smhd])$`)
)

// shorten copies the shipped rules with their times divided, and nothing else changed.
func shorten(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.yml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if standsIn.Match(raw) {
			return fmt.Errorf("%s has a value for what is missing", file)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), []byte(shortened(string(raw))), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func shortened(text string) string {
	return divide(asWait, divide(inExpression, text, shortest), time.Second)
}

// divide divides the times that a pattern finds.
func divide(times *regexp.Regexp, text string, least time.Duration) string {
	return times.ReplaceAllStringFunc(text, func(found string) string {
		m := times.FindStringSubmatch(found)
		return m[1] + max(divided(m[2], m[3]), least).String()
	})
}

func divided(number, unit string) time.Duration {
	n, _ := strconv.Atoi(number)
	return (time.Duration(n) * map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[unit] / hurry).Round(time.Second)
}
