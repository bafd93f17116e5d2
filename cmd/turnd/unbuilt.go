package main

import "errors"

// checkUnbuilt refuses settings that this build would have to ignore.
func (c Config) checkUnbuilt() error {
	if c.WebListen != off {
		return errors.New("--web-listen: a listener of its own for the web needs TLS, which is not built yet; leave it off")
	}
	return nil
}
