package link

import (
	"context"

	"github.com/shoal-mp/shoal/internal/registry"
)

// A Transport reaches other machines. Its streams have proven the key.
//
// It is entered by the package that has it, which programs link for that: most need none, and with
// package net they would link the C library.
type Transport struct {
	// Listen has met called with each stream, in a goroutine of its own.
	Listen func(addr string, key []byte, met func(Stream)) (Listener, error)
	Dial   func(ctx context.Context, addr string, key []byte) (Stream, error)
}

// A Listener of a Transport. Close waits until no met is going on.
type Listener interface {
	Addr() string
	Close() error
}

var transports registry.Table[Transport]

// AddTransport enters a Transport under the scheme of its addresses.
func AddTransport(scheme string, t Transport) { transports.Add("link.AddTransport", scheme, t) }

// TransportOf returns what was entered under a scheme.
func TransportOf(scheme string) (Transport, bool) { return transports.Get(scheme) }
