package remote

import (
	"crypto/tls"
	"testing"
)

// SelfSigned is for tests that play somebody else.
func SelfSigned(t testing.TB) tls.Certificate {
	t.Helper()
	cert, err := selfSigned()
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
