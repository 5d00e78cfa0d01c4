package link

import (
	"encoding/binary"
	"os"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A Binding ties a proof to one connection: what both sides know of it, and somebody in the middle,
// who has one connection to each of them, does not know or has otherwise.
type Binding struct {
	place uint64 // of this side: binds only where the other side's is the same
	bytes []byte
}

// Bound returns the Binding of a connection of which both sides know a secret.
func Bound(secret []byte) Binding { return Binding{bytes: secret} }

// ServerBinding and ClientBinding return the Binding of a Unix socket: the processes at its ends.
// Each side knows its own, and asks the kernel for the other one. A relay is the other process for
// both of them, so their bindings are not the same. Process numbers are those of a PID namespace;
// between two of them the kernel names nobody that the other side would know, and proofs bind
// nothing.
func ServerBinding(c *sys.Conn) (Binding, error) {
	_, pid, err := sys.PeerUID(c)
	return processes(os.Getpid(), pid), err
}

// ClientBinding is ServerBinding of the other side.
func ClientBinding(c *sys.Conn) (Binding, error) {
	_, pid, err := sys.PeerUID(c)
	return processes(pid, os.Getpid()), err
}

func processes(server, client int) Binding {
	place := sys.Namespace("pid")
	if place == 0 {
		return Binding{} // there is no /proc
	}
	b := binary.LittleEndian.AppendUint32([]byte("processes "), uint32(server))
	return Binding{place, binary.LittleEndian.AppendUint32(b, uint32(client))}
}

// with returns what is bound where the other side is at a place. The proof covers both places as
// each side knows them, so nobody in the middle can have them differ.
func (b Binding) with(theirs uint64) []byte {
	if theirs != b.place {
		return nil
	}
	return b.bytes
}
