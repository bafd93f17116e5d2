package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"

	"google.golang.org/grpc/credentials"
)

// protocols are what can be spoken inside TLS, in the order of preference. Clients of gRPC insist on h2.
var protocols = []string{"h2", "http/1.1"}

// offering is a configuration that offers protocols, and has those offer them that it picks for a client.
func offering(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.NextProtos = protocols
	if pick := config.GetConfigForClient; pick != nil {
		config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			picked, err := pick(hello)
			if picked == nil || err != nil {
				return nil, err
			}
			picked = picked.Clone()
			picked.NextProtos = protocols
			return picked, nil
		}
	}
	return config
}

// startTLS makes the handshake, within the deadline of the connection. Without TLS it is the connection itself.
func (s *splitter) startTLS(conn net.Conn) (net.Conn, error) {
	if s.tls == nil {
		return conn, nil
	}
	inside := tls.Server(conn, s.tls)
	err := inside.Handshake()
	if err == nil {
		return inside, nil
	}
	s.log.Debug("TLS handshake failed", "remote", conn.RemoteAddr().String(), "error", err)
	if plain := (tls.RecordHeaderError{}); errors.As(err, &plain) && plain.Conn != nil && looksLikeHTTP(plain.RecordHeader) {
		_, _ = io.WriteString(conn, speakTLS)
	}
	return nil, err
}

// speakTLS answers a client that speaks without TLS. A client of gRPC can't read it, but tells its user that the answer
// looks like HTTP/1.1.
const speakTLS = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: 35\r\n\r\n" +
	"this port of turnd speaks TLS only\n"

// looksLikeHTTP tells the beginnings of HTTP/1.1 and, in the clear, of HTTP/2.
func looksLikeHTTP(head [5]byte) bool {
	switch method, _, _ := strings.Cut(string(head[:]), " "); method {
	case "GET", "HEAD", "POST", "PUT", "OPTIO", "PATCH", "DELET", "PRI":
		return true
	}
	return false
}

// farewell ends a connection that did not come to anything, within its deadline. The client may be sending still: if the
// connection were just closed, it would be reset before it has read the alert that says what is wrong.
func farewell(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, farewellBytes)
	}
}

// farewellBytes is more than what a client can have sent when it learns that its handshake failed.
const farewellBytes = 64 << 10

// tlsHeadConn is a headConn inside TLS. Whoever serves it can ask what was agreed on.
type tlsHeadConn struct {
	headConn
	inside *tls.Conn
}

// ConnectionState is what net/http asks for, to fill in Request.TLS.
func (c *tlsHeadConn) ConnectionState() tls.ConnectionState { return c.inside.ConnectionState() }

// finishedTLS tells gRPC of a handshake that was made before it got the connection, so that a call's peer holds a
// credentials.TLSInfo with the client's certificate.
type finishedTLS struct{}

// ServerHandshake implements credentials.TransportCredentials.
func (finishedTLS) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	made, ok := conn.(interface{ ConnectionState() tls.ConnectionState })
	if !ok {
		return nil, nil, errors.New("the connection is not inside TLS")
	}
	return conn, credentials.TLSInfo{
		State:          made.ConnectionState(),
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
	}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (finishedTLS) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are a server's")
}

// Info implements credentials.TransportCredentials.
func (finishedTLS) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (finishedTLS) Clone() credentials.TransportCredentials { return finishedTLS{} }

// OverrideServerName implements credentials.TransportCredentials.
func (finishedTLS) OverrideServerName(string) error { return nil }
