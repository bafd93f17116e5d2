// Package certs reads the PEM files of TLS and keeps in force what they say now.
//
// Certificates are renewed by tools that write files, or swap symlinks, while a process serves. A Keeper looks at its
// files from time to time. What it finds whole is in force for the next handshake; what is half written, or a certificate
// without its key, leaves in force what was there before. Connections that are open keep what they were opened with.
//
// No error and no log line of this package holds any content of a key.
package certs
