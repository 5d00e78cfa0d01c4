package watch

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// A Join identifies the shoal watch of another machine. Its programs are shown as well.
type Join struct {
	url   *url.URL
	print [sha256.Size]byte // certificate fingerprint; zero means verification by authorities
	roots *x509.CertPool    // nil means the system's
}

// ParseJoin parses the URL printed by another shoal watch. If the fragment holds a certificate
// fingerprint, the certificate is verified by it alone. Otherwise it is verified by roots, or by
// the system's authorities if roots is nil. Plain HTTP is accepted only for loopback addresses.
// Errors never contain the token.
func ParseJoin(text string, roots *x509.CertPool) (Join, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Join{}, errors.New("invalid URL: want the URL printed by the other shoal watch")
	}
	j := Join{url: &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}, roots: roots}
	token := strings.Trim(u.Path, "/")
	switch {
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return Join{},
			errors.New("want an https URL, or http on the loopback: pass the URL printed by the other shoal watch")
	case token == "" || strings.Contains(token, "/") || u.User != nil || u.RawQuery != "":
		return Join{}, fmt.Errorf("%s: want a URL with only the token in its path: pass the whole URL", u.Host)
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return Join{}, fmt.Errorf("%s: plain http would expose the token to the network: start that shoal watch "+
			"with -cert and -key, "+
			"or -self-signed, or connect to its loopback by ssh -L", u.Host)
	case u.Scheme == "http" && u.Fragment != "":
		return Join{}, fmt.Errorf("%s: got a certificate fingerprint with an http URL, want https", u.Host)
	}
	if u.Fragment != "" {
		sum, err := hex.DecodeString(strings.ReplaceAll(u.Fragment, ":", ""))
		if err != nil || len(sum) != sha256.Size {
			return Join{},
				fmt.Errorf("%s: invalid fingerprint after #, want the certificate's SHA-256 in 64 hexadecimal digits",
					u.Host)
		}
		j.print = [sha256.Size]byte(sum)
	}
	j.url.Path = "/" + token + "/"
	return j, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// key identifies a join by host and port.
func (j Join) key() string { return j.url.Host }

// client returns an HTTP client for a single request: it keeps no connection. It must not follow
// redirects, because the token is meant for this host only.
func (j Join) client() *http.Client {
	c := &tls.Config{RootCAs: j.roots, MinVersion: tls.VersionTLS12}
	if j.print != [sha256.Size]byte{} {
		c.InsecureSkipVerify = true // VerifyConnection checks the fingerprint
		c.VerifyConnection = func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || sha256.Sum256(s.PeerCertificates[0].Raw) != j.print {
				return errPrint
			}
			return nil
		}
	}
	dialer := &net.Dialer{Timeout: patience, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: patience, Interval: patience / 2, Count: 3}}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: c, TLSHandshakeTimeout: patience,
			ResponseHeaderTimeout: patience, MaxResponseHeaderBytes: 16 << 10, DisableKeepAlives: true,
			DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var errPrint = errors.New("certificate does not have the fingerprint after # in -join")

// open requests the stream of readings. The caller must close the body. Errors are meant for users
// and do not contain the token.
func (j Join) open(ctx context.Context) (*http.Response, error) {
	at := *j.url
	at.Path += own
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("invalid URL: %w", stripURL(err))
	}
	answer, err := j.client().Do(r)
	if err != nil {
		return nil, adviseCertificate(stripURL(err))
	}
	kind := answer.Header.Get("Content-Type")
	switch {
	case answer.StatusCode == http.StatusOK && kind == "text/event-stream":
		return answer, nil
	case answer.StatusCode == http.StatusForbidden:
		err = errors.New("token rejected: the other shoal watch was restarted: pass the URL that it printed last " +
			"to -join")
	case answer.StatusCode == http.StatusMisdirectedRequest:
		err = errors.New("host name in the URL rejected: pass the URL printed by the other shoal watch to -join")
	case answer.StatusCode == http.StatusServiceUnavailable:
		err = errors.New("too many open pages")
	default:
		err = fmt.Errorf("not a shoal watch of this version: got HTTP status %d %s",
			answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	answer.Body.Close()
	return nil, err
}

// stripURL returns an error of net/http without the URL, which contains the token. It returns
// other errors unchanged.
func stripURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// adviseCertificate adds the remedy to an error about an unknown authority, and returns other
// errors unchanged.
func adviseCertificate(err error) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w: set -ca, or use the URL with the fingerprint of a -self-signed certificate", err)
	}
	return err
}

// backoff returns the delay after n failed attempts: it doubles from 250 ms to 5 s.
func backoff(n int) time.Duration { return min(5*time.Second, 250*time.Millisecond<<min(n, 5)) }
