// Package socket serves a domain over a Unix socket: a process that knows the token can join the
// domain, and any process of the same user can inspect it.
package socket
