package watch

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// A guard passes on requests that have the token and come from the page itself.
type guard struct {
	token string
	names []string          // host names of this server
	leaf  *x509.Certificate // its names are valid as well; nil without TLS
	local bool              // accept only loopback addresses as host
	next  http.Handler      // gets the path after the token
}

// policy is the Content-Security-Policy: pages may load only files of this server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP passes the request on or rejects it. Every response has headers that isolate the page
// from other sites.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer") // the URL contains the token
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-store")
	if !g.isOurs(r.Host) {
		respondError(w, http.StatusMisdirectedRequest, "Unknown host name",
			"This server does not serve the host name in the URL. Open the URL printed by shoal watch.")
		return
	}
	if isForeign(r) {
		respondError(w, http.StatusForbidden, "Request from another site",
			"Another site requested this page. Open the URL printed by shoal watch in a new tab.")
		return
	}
	token, rest, behind := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !g.isToken(token) {
		respondError(w, http.StatusForbidden, "The token is missing",
			"Only the user who started shoal watch may open this page. Copy the whole URL printed by shoal watch, "+
				"to its last "+
				"character. Each start of shoal watch creates a new token, so an old bookmark does not work.")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		respondError(w, http.StatusMethodNotAllowed, "Method not allowed", "This page is read-only: use GET.")
		return
	}
	if !behind { // relative links need the slash
		http.Redirect(w, r, "/"+g.token+"/", http.StatusSeeOther)
		return
	}
	inner := r.Clone(r.Context())
	inner.URL = &url.URL{Path: "/" + rest}
	g.next.ServeHTTP(w, inner)
}

// isToken reports whether got is the token. It compares hashes in constant time, so that the
// timing reveals neither the token nor its length.
func (g *guard) isToken(got string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(g.token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// isOurs reports whether a Host header names this server. The check prevents DNS rebinding: a
// foreign site may resolve its own name to this server's address, but the requests still carry that
// name. A numeric address cannot be rebound. The port is not checked, because it differs behind ssh
// -L.
func (g *guard) isOurs(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return !g.local || ip.IsLoopback()
	}
	for _, n := range append([]string{"localhost"}, g.names...) {
		if strings.EqualFold(name, n) {
			return true
		}
	}
	return g.leaf != nil && g.leaf.VerifyHostname(name) == nil
}

// isForeign reports whether a page of another site issued the request. Following a link from
// another site is allowed.
func isForeign(r *http.Request) bool {
	if o := r.Header.Get("Origin"); o != "" {
		u, err := url.Parse(o)
		if err != nil || u.Host != r.Host {
			return true
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if site == "" || site == "same-origin" || site == "none" {
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// respondError responds with a static page that names the remedy, and closes the connection. It
// does not escape title and text, which must be constants.
func respondError(w http.ResponseWriter, status int, title, text string) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write([]byte(`<!doctype html><html lang="en"><meta charset="utf-8">` +
		`<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">` +
		`<title>shoal watch: ` + title + `</title><h1>` + title + `</h1><p>` + text + "</p></html>\n"))
}
