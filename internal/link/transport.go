package link

import (
	"context"

	"github.com/shoal-mp/shoal/internal/registry"
)

// A Transport connects to other machines. Its streams have proven the key.
//
// A Transport is registered by the package that implements it, which programs must import
// explicitly. Most programs need none, and would link the C library because of package net.
type Transport struct {
	// Listen calls met for each stream, each on a new goroutine. opts is nil for the
	// defaults. Both functions must return an error for options of another Transport.
	Listen func(addr string, key []byte, opts Options, met func(Stream)) (Listener, error)
	Dial   func(ctx context.Context, addr string, key []byte, opts Options) (Stream, error)
}

// Options are options of a Transport. ipc.TransportOptions is the same interface, which users can
// name.
type Options interface {
	// TransportOptions does nothing. It marks the types that are Options.
	TransportOptions()
}

// A Listener is a listener of a Transport. Close must wait until all calls of met have returned.
type Listener interface {
	Addr() string
	Close() error
}

var transports registry.Table[Transport]

// AddTransport registers a Transport for the scheme of its addresses. It panics if the scheme is
// already taken, and after the program's Main has begun.
func AddTransport(scheme string, t Transport) { transports.Add("link.AddTransport", scheme, t) }

// TransportOf returns the Transport for a scheme. It returns false if none is registered.
func TransportOf(scheme string) (Transport, bool) { return transports.Get(scheme) }
