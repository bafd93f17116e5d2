// Package manifests holds no code: its tests read the files of deploy/ that are for containers, each by the types or the parser of the
// program that it is written for, and hold them to what turnd serves, takes and needs. It is a module of its own because
// those types are many times the service's own code. make manifests runs it.
package manifests
