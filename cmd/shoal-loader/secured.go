package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// secured holds the paths of the TLS files of a data host or a trainer.
type secured struct{ Cert, Key, Authority string }

// hostConfig returns the TLS configuration of a data host, or nil if the host should use a new
// self-signed certificate. If an authority is given, trainers must present a certificate signed
// by it. The error wraps [errOption], unless the authority's file cannot be read.
func (s secured) hostConfig() (*tls.Config, error) {
	config, pool, err := s.read()
	if config != nil && pool != nil {
		config.ClientCAs, config.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return config, err
}

// trainerConfig returns the TLS configuration of a trainer, or nil if only the shared key
// authenticates the hosts. name is the expected server name and requires an authority.
func (s secured) trainerConfig(name string) (*tls.Config, error) {
	config, pool, err := s.read()
	if err == nil && pool == nil && name != "" {
		return nil, fmt.Errorf("%w: server_name requires ca, the CA certificates that verify it", errOption)
	}
	if config != nil {
		config.RootCAs, config.ServerName = pool, name
		config.InsecureSkipVerify = pool == nil // the shared key authenticates
	}
	return config, err
}

func (s secured) read() (config *tls.Config, pool *x509.CertPool, err error) {
	if (s.Cert == "") != (s.Key == "") {
		return nil, nil, fmt.Errorf("%w: a certificate and its key must be set together", errOption)
	}
	if s.Cert == "" && s.Authority == "" {
		return nil, nil, nil
	}
	config = new(tls.Config)
	if s.Cert != "" {
		cert, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: load certificate %s: %w", errOption, s.Cert, err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	if s.Authority != "" {
		text, err := os.ReadFile(s.Authority)
		if err != nil {
			return nil, nil, err
		}
		if pool = x509.NewCertPool(); !pool.AppendCertsFromPEM(text) {
			return nil, nil, fmt.Errorf("%w: %s: no PEM certificate found", errOption, s.Authority)
		}
	}
	return config, pool, nil
}
