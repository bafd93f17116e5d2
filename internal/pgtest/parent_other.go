//go:build unix && !linux

package pgtest

import "syscall"

// dieWithParent does nothing where the kernel does not offer it: a server whose test binary was killed stays.
func dieWithParent(*syscall.SysProcAttr) {}
