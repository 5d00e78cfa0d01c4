package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// secured are the files of TLS, of which a data host and its trainers have their own.
type secured struct{ Cert, Key, Authority string }

// host returns the TLS of a data host, nil for a certificate that is made now.
func (s secured) host() (*tls.Config, error) {
	config, pool, err := s.read()
	if config != nil && pool != nil {
		config.ClientCAs, config.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return config, err
}

// trainer returns the TLS of a trainer, nil if the key alone decides.
func (s secured) trainer(name string) (*tls.Config, error) {
	config, pool, err := s.read()
	if err == nil && pool == nil && name != "" {
		return nil, fmt.Errorf("%w: server_name needs ca, the authorities that have signed it", errOption)
	}
	if config != nil {
		config.RootCAs, config.ServerName = pool, name
		config.InsecureSkipVerify = pool == nil // the key decides, as without TLS options
	}
	return config, err
}

func (s secured) read() (config *tls.Config, pool *x509.CertPool, err error) {
	if (s.Cert == "") != (s.Key == "") {
		return nil, nil, fmt.Errorf("%w: a certificate and its key go together", errOption)
	}
	if s.Cert == "" && s.Authority == "" {
		return nil, nil, nil
	}
	config = new(tls.Config)
	if s.Cert != "" {
		cert, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: the certificate in %s: %w", errOption, s.Cert, err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	if s.Authority != "" {
		text, err := os.ReadFile(s.Authority)
		if err != nil {
			return nil, nil, err
		}
		if pool = x509.NewCertPool(); !pool.AppendCertsFromPEM(text) {
			return nil, nil, fmt.Errorf("%w: %s has no certificate in PEM", errOption, s.Authority)
		}
	}
	return config, pool, nil
}
