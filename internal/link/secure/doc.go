// Package secure provides links to other machines: TCP, TLS 1.3, and on top of it the proof of a
// key that is bound to the TLS connection.
package secure
