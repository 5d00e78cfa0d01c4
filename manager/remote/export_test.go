package remote

import (
	"crypto/tls"
	"testing"

	"github.com/shoal-mp/shoal/internal/link/secure"
)

// SelfSigned is for tests that play somebody else.
func SelfSigned(t testing.TB) tls.Certificate {
	t.Helper()
	cert, err := secure.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
