package certs_test

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/certs"
	"github.com/turnd/turnd/internal/certs/certstest"
)

func TestABadFileIsNamedWithWhatIsWrongAndNothingOfAKey(t *testing.T) {
	ca := certstest.NewAuthority(t)
	good, other := ca.Issue(t), ca.Issue(t)
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	mangled := bytes.Replace(good.Key, []byte("\nM"), []byte("\nN"), 1)
	require.NotEqual(t, good.Key, mangled)
	for _, row := range []struct {
		name             string
		certificate, key []byte
		role             certs.Role
		problem          string
	}{
		{"an empty certificate", []byte("\n"), good.Key, certs.Certificate, "is empty"},
		{"a certificate that is not PEM", []byte("hello"), good.Key, certs.Certificate, "is not PEM"},
		{"a certificate that is cut off", cut(good.Certificate), good.Key, certs.Certificate, "holds a PEM block that is cut off or damaged"},
		{"a chain that is cut off", append(bytes.Clone(good.Certificate), cut(ca.Certificate)...), good.Key, certs.Certificate,
			"holds a PEM block that is cut off or damaged"},
		{"files the wrong way round", good.Key, good.Certificate, certs.Certificate, "holds no certificate, but a block of the type PRIVATE KEY"},
		{"a certificate of other bytes", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hello")}), good.Key, certs.Certificate,
			"holds a certificate that can't be read"},
		{"a large certificate", append(bytes.Clone(good.Certificate), make([]byte, 1<<20)...), good.Key, certs.Certificate, "is larger than 1048576 bytes"},
		{"an empty key", good.Certificate, nil, certs.Key, "is empty"},
		{"a key that is cut off", good.Certificate, cut(good.Key), certs.Key, "holds a PEM block that is cut off or damaged"},
		{"a key that is none", good.Certificate, good.Certificate, certs.Key, "holds no private key, but a block of the type CERTIFICATE"},
		{"another key", good.Certificate, other.Key, certs.Key, "is not the key of the certificate in "},
		{"a mangled key", good.Certificate, mangled, certs.Key, "holds a private key that can't be read"},
		{"an encrypted key", good.Certificate, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}), certs.Key,
			"holds a key that is encrypted, and there is nobody to ask for its passphrase"},
		{"a key encrypted the old way", good.Certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY",
			Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"}, Bytes: []byte("x")}), certs.Key, "is encrypted"},
	} {
		t.Run(row.name, func(t *testing.T) {
			certificate, key := certstest.Pair{Certificate: row.certificate, Key: row.key}.Write(t, t.TempDir())
			_, err := certs.ReadPair(certificate, key)
			var bad *certs.FileError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, row.role, bad.Role)
			require.Equal(t, map[certs.Role]string{certs.Certificate: certificate, certs.Key: key}[row.role], bad.File)
			require.Contains(t, bad.Problem, row.problem)
			for line := range strings.Lines(string(row.key)) {
				if len(line) > 40 {
					require.NotContains(t, err.Error(), line[:20])
				}
			}
		})
	}
}

func TestAFileThatIsNotThereOrIsNoFileIsNamed(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone.pem")
	_, err := certs.ReadPool(gone)
	require.EqualError(t, err, gone+" can't be read: no such file or directory")
	_, err = certs.ReadPool(dir)
	require.EqualError(t, err, dir+" is not a regular file")
	_, err = certs.ReadPair(gone, gone)
	require.EqualError(t, err, gone+" can't be read: no such file or directory")
	certificate, _ := certstest.NewAuthority(t).Issue(t).Write(t, dir)
	_, err = certs.ReadPair(certificate, gone)
	require.EqualError(t, err, gone+" can't be read: no such file or directory")
	_, err = certs.ReadPool(filepath.Join(dir, "tls.key"))
	require.ErrorContains(t, err, "holds no certificate")
}

func TestOneFileCanHoldTheCertificateAndItsKey(t *testing.T) {
	pair := certstest.NewAuthority(t).Issue(t)
	both := filepath.Join(t.TempDir(), "both.pem")
	require.NoError(t, os.WriteFile(both, append(bytes.Clone(pair.Key), pair.Certificate...), 0o600))
	got, err := certs.ReadPair(both, both)
	require.NoError(t, err)
	require.Equal(t, pair.Serial(t), got.Leaf.SerialNumber.String())
}

func TestAClientTrustsTheSystemUnlessItIsToldWhom(t *testing.T) {
	config, err := certs.Client(certs.ClientFiles{})
	require.NoError(t, err)
	require.Nil(t, config.RootCAs)
	require.Empty(t, config.Certificates)
	_, err = certs.Client(certs.ClientFiles{CA: "/no/such/file"})
	require.ErrorContains(t, err, "/no/such/file")
	_, err = certs.Client(certs.ClientFiles{Certificate: "/no/such/file"})
	require.ErrorContains(t, err, "/no/such/file")
	ca := certstest.NewAuthority(t)
	certificate, key := ca.Issue(t).Write(t, t.TempDir())
	config, err = certs.Client(certs.ClientFiles{CA: certificate, Certificate: certificate, Key: key})
	require.NoError(t, err)
	require.NotNil(t, config.RootCAs)
	require.Len(t, config.Certificates, 1)
}
