package link

import (
	"encoding/binary"
	"os"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A Binding ties a proof of the key to one connection. Both sides must derive the same bytes. A man
// in the middle has a separate connection to each side, so their bindings differ.
type Binding struct {
	place uint64 // namespace of this side; bytes are used only if both sides are in the same
	bytes []byte
}

// Bound returns a Binding for a connection with a secret that only its two sides know, such as
// exported TLS keying material.
func Bound(secret []byte) Binding { return Binding{bytes: secret} }

// ServerBinding returns the server's Binding of a Unix socket, which contains the process ids of
// both ends. Each side knows its own process id and gets the other one from the kernel. A relay is
// the peer of both sides, so their bindings differ. Process ids are relative to a PID namespace:
// between two namespaces there is no process id that both sides know, and the proof is not bound to
// the connection.
func ServerBinding(c *sys.Conn) (Binding, error) {
	_, pid, err := sys.PeerUID(c)
	return processBinding(os.Getpid(), pid), err
}

// ClientBinding returns the client's Binding of a Unix socket; see [ServerBinding].
func ClientBinding(c *sys.Conn) (Binding, error) {
	_, pid, err := sys.PeerUID(c)
	return processBinding(pid, os.Getpid()), err
}

func processBinding(server, client int) Binding {
	place := sys.Namespace("pid")
	if place == 0 {
		return Binding{} // no /proc
	}
	b := binary.LittleEndian.AppendUint32([]byte("processes "), uint32(server))
	return Binding{place, binary.LittleEndian.AppendUint32(b, uint32(client))}
}

// bytesFor returns the bytes of the binding, or nil if the other side is in another namespace
// than this one. theirs is the place that the other side has sent. The proof covers both
// namespaces as each side knows them, so a man in the middle cannot make them appear to differ.
func (b Binding) bytesFor(theirs uint64) []byte {
	if theirs != b.place {
		return nil
	}
	return b.bytes
}
