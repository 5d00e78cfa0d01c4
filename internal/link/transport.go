package link

import (
	"context"

	"github.com/shoal-mp/shoal/internal/registry"
)

// A Transport reaches other machines. Its streams have proven the key.
//
// The package that implements a Transport adds it, and programs link that package for it. Most
// programs need none. With package net they would link the C library.
type Transport struct {
	// Listen calls met for each stream, in a goroutine of its own. Both functions take the options
	// that are theirs, and pass the others over.
	Listen func(addr string, key []byte, opts []Option, met func(Stream)) (Listener, error)
	Dial   func(ctx context.Context, addr string, key []byte, opts []Option) (Stream, error)
}

// An Option is what package ipc or a Transport may be told of a meeting.
type Option interface {
	// MeetingOption does nothing. It marks the types that are Options.
	MeetingOption()
}

// A Listener of a Transport accepts streams. Close waits until no call of met runs.
type Listener interface {
	Addr() string
	Close() error
}

var transports registry.Table[Transport]

// AddTransport adds a Transport under the scheme of its addresses.
func AddTransport(scheme string, t Transport) { transports.Add("link.AddTransport", scheme, t) }

// TransportOf returns the Transport of a scheme.
func TransportOf(scheme string) (Transport, bool) { return transports.Get(scheme) }
