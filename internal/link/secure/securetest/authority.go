package securetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority is a certificate authority for tests.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New returns a new authority with a self-signed certificate, which is valid for an hour. Like
// the other functions that have a t, it ends the test if it fails.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{}
	a.cert, a.key = a.signCertificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "an authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// signCertificate returns a certificate for template with a new key. It is self-signed if the
// authority has no certificate yet.
func (a *Authority) signCertificate(t testing.TB, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(math.MaxInt64)); err != nil {
		t.Fatal(err)
	}
	now := time.Now() // wall-clock time, because certificates contain it
	template.NotBefore = now.Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = now.Add(time.Hour)
	}
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// Certificate returns a certificate for a host name and for 127.0.0.1, for servers and clients.
// It is valid for an hour.
func (a *Authority) Certificate(t testing.TB, name string) tls.Certificate {
	t.Helper()
	return a.issueUntil(t, name, time.Time{})
}

// Expired is [Authority.Certificate], but the certificate expired a minute ago.
func (a *Authority) Expired(t testing.TB, name string) tls.Certificate {
	t.Helper()
	return a.issueUntil(t, name, time.Now().Add(-time.Minute))
}

func (a *Authority) issueUntil(t testing.TB, name string, end time.Time) tls.Certificate {
	t.Helper()
	cert, key := a.signCertificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: end, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// Pool returns a certificate pool with the authority, for [tls.Config].
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Write writes the files ca.pem, the authority's certificate, and cert.pem and key.pem, a new
// certificate for the host name and its key, to the directory dir, which must exist.
func (a *Authority) Write(t testing.TB, dir, name string) {
	t.Helper()
	cert := a.Certificate(t, name)
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{
		"ca.pem":   {Type: "CERTIFICATE", Bytes: a.cert.Raw},
		"cert.pem": {Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
