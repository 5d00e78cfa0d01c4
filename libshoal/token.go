//go:build cgo && linux

package main

import (
	"encoding/binary"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A token says where an object can be imported, and proves that its holder may do so. Its encoding
// is: magic 4, version 1, id 8, nonce 16, domain token 16, key 32, and two strings of a length byte
// and as many bytes: the address of the domain and of the registry.
type token struct {
	id       uint64 // of the export; 0 for the ticket of a fork
	nonce    [16]byte
	domain   arena.Token // of the arena listener
	key      [32]byte    // of the registry
	joinAddr string
	address  string
}

const (
	tokenMagic   = "SHLT"
	tokenVersion = 1
	tokenFixed   = 4 + 1 + 8 + 16 + 16 + 32
	mostToken    = 256 // SHOAL_MAX_TOKEN
)

// encode appends the encoding of t to b and returns the extended slice. The error wraps
// errTooLarge if the addresses are too long.
func (t *token) encode(b []byte) ([]byte, error) {
	if tokenFixed+2+len(t.joinAddr)+len(t.address) > mostToken || len(t.joinAddr) > 255 || len(t.address) > 255 {
		return nil, fmt.Errorf("%w: addresses %q and %q do not fit into a token", errTooLarge, t.joinAddr, t.address)
	}
	b = append(append(b, tokenMagic...), tokenVersion)
	b = binary.LittleEndian.AppendUint64(b, t.id)
	b = append(append(append(b, t.nonce[:]...), t.domain[:]...), t.key[:]...)
	b = append(append(b, byte(len(t.joinAddr))), t.joinAddr...)
	return append(append(b, byte(len(t.address))), t.address...), nil
}

// decodeToken reads a token, which may come from anywhere. The error wraps errArgument if b is
// no token, and [arena.ErrVersion] if it is of another version.
func decodeToken(b []byte) (t token, err error) {
	if len(b) < tokenFixed+2 || len(b) > mostToken || string(b[:4]) != tokenMagic {
		return t, fmt.Errorf("%w: %d bytes are no token of shoal_export: want %d to %d bytes that begin with %q",
			errArgument,
			len(b), tokenFixed+2, mostToken, tokenMagic)
	}
	if b[4] != tokenVersion {
		return t, fmt.Errorf("%w: the token has version %d, want %d: build both programs with one version of Shoal",
			arena.ErrVersion, b[4], tokenVersion)
	}
	t.id = binary.LittleEndian.Uint64(b[5:])
	b = b[13:]
	b = b[copy(t.nonce[:], b):]
	b = b[copy(t.domain[:], b):]
	b = b[copy(t.key[:], b):]
	for _, s := range []*string{&t.joinAddr, &t.address} {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return t, fmt.Errorf("%w: the token is cut off", errArgument)
		}
		*s = string(b[1 : 1+b[0]])
		b = b[1+b[0]:]
	}
	if len(b) != 0 {
		return t, fmt.Errorf("%w: the token has %d more bytes than its addresses", errArgument, len(b))
	}
	return t, nil
}
