package pgtest

import "syscall"

// dieWithParent makes the kernel stop the server at once when the thread that started it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
