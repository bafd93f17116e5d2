// Package limiter holds the limits that one worker keeps in its own memory: how often each subject may submit and look, how
// many of its looks may be under way at once, and for how long an answer about a suspension is good.
//
// What is kept is bounded by a number of subjects. One that was pushed out by others comes back as if it had been silent, so
// what a subject may do across workers and for ever is for the store to count.
package limiter
