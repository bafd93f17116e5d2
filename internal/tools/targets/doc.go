// Package targets holds no code: its tests keep the promises that the Makefile and the scripts in .ci make to people and
// to CI, above all that a target's last line and its exit status say the same.
package targets
