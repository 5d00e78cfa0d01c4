package secure_test

import (
	"crypto/sha256"
	"crypto/tls"
	"testing"

	"github.com/shoal-mp/shoal/internal/link/secure"
)

// A fingerprint is known only if each client sees the same certificate.
func TestFingerprintOf(t *testing.T) {
	byName := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
	one, two := tls.Certificate{Certificate: [][]byte{{1}}}, tls.Certificate{Certificate: [][]byte{{2}}}
	for name, tt := range map[string]struct {
		config *tls.Config
		want   [sha256.Size]byte
	}{
		"no configuration": {nil, [sha256.Size]byte{}},
		"no certificate":   {&tls.Config{}, [sha256.Size]byte{}},
		"one":              {&tls.Config{Certificates: []tls.Certificate{one}}, sha256.Sum256([]byte{1})},
		"several":          {&tls.Config{Certificates: []tls.Certificate{one, two}}, [sha256.Size]byte{}},
		"by name":          {&tls.Config{Certificates: []tls.Certificate{one}, GetCertificate: byName}, [sha256.Size]byte{}},
	} {
		if got := secure.FingerprintOf(tt.config); got != tt.want {
			t.Errorf("%s: got %x, want %x", name, got, tt.want)
		}
	}
}
