package secure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"time"
)

// ServerConfig returns a copy of given, which may be nil, for a listener. If given has no
// certificate, the copy has a new self-signed one, which is never written to a file.
func ServerConfig(given *tls.Config) (*tls.Config, error) {
	config := new(tls.Config)
	if given != nil {
		config = given.Clone()
	}
	requireTLS13(config)
	if len(config.Certificates) > 0 || config.GetCertificate != nil || config.GetConfigForClient != nil {
		return config, nil
	}
	cert, err := SelfSigned()
	config.Certificates = []tls.Certificate{cert}
	return config, err
}

// FingerprintOf returns the SHA-256 of the certificate in a listener's configuration. It is zero if
// the certificate is not known in advance: if config is nil, has several certificates or none, or
// has GetCertificate or GetConfigForClient.
func FingerprintOf(config *tls.Config) (sum [sha256.Size]byte) {
	if config == nil || len(config.Certificates) != 1 || config.GetConfigForClient != nil ||
		config.GetCertificate != nil {
		return sum
	}
	return sha256.Sum256(config.Certificates[0].Certificate[0])
}

// requireTLS13 changes config to require TLS 1.3, also for configurations returned by
// GetConfigForClient. It disables dynamic record sizing, because the traffic is bulk data.
func requireTLS13(config *tls.Config) {
	config.MinVersion = max(config.MinVersion, tls.VersionTLS13)
	config.DynamicRecordSizingDisabled = true
	choose := config.GetConfigForClient
	if choose == nil {
		return
	}
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		chosen, err := choose(hello)
		if chosen != nil {
			chosen = chosen.Clone()
			requireTLS13(chosen)
		}
		return chosen, err
	}
}

// SelfSigned returns a self-signed certificate with a new key. It is valid for ten years.
func SelfSigned() (cert tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cert, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return cert, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "shoal"},
		NotBefore:    now.Add(-time.Hour), // tolerate clock skew
		NotAfter:     now.AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return cert, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
