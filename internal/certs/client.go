package certs

import "crypto/tls"

// ClientFiles are those of a client. All may be empty.
type ClientFiles struct {
	// CA holds what the server's certificate must be signed by, instead of the roots of the system.
	CA string
	// Certificate and Key are by what the client is known to a server that asks.
	Certificate, Key string
}

// Client reads the files of a client. An error is a *FileError.
func Client(files ClientFiles) (_ *tls.Config, err error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if files.CA != "" {
		if config.RootCAs, err = ReadPool(files.CA); err != nil {
			return nil, err
		}
	}
	if files.Certificate != "" {
		pair, err := ReadPair(files.Certificate, files.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
