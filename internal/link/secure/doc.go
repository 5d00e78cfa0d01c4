// Package secure is a link to other machines: TCP, TLS 1.3, and within it the proof of a key that
// is bound to this one TLS connection.
package secure
