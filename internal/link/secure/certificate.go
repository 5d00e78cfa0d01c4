package secure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"time"
)

// serverConfig returns given, or a configuration with a certificate that is made for this listener
// and never written to a file.
func serverConfig(given *tls.Config) (*tls.Config, error) {
	if given != nil {
		config := given.Clone()
		harden(config)
		return config, nil
	}
	cert, err := SelfSigned()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}}
	harden(config)
	return config, nil
}

// harden refuses older versions of TLS. It makes records have their full size from the first on,
// because the traffic is bulk.
func harden(config *tls.Config) {
	config.MinVersion = max(config.MinVersion, tls.VersionTLS13)
	config.DynamicRecordSizingDisabled = true
}

// SelfSigned makes a certificate that nobody has signed, with a new key.
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
		NotBefore:    now.Add(-time.Hour), // clocks differ
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
