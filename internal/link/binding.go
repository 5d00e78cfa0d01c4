package link

import (
	"encoding/binary"
	"os"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A Binding ties a proof to one connection. Both sides know its bytes. A process in the middle has
// one connection to each side, so it does not know the bytes, or has other ones.
type Binding struct {
	place uint64 // of this side: the bytes bind only if the other side's place is the same
	bytes []byte
}

// Bound returns the Binding of a connection whose two sides know a secret.
func Bound(secret []byte) Binding { return Binding{bytes: secret} }

// ServerBinding returns a server's Binding of a Unix socket: the processes at its ends. Each side
// knows its own process number, and asks the kernel for the other one. A relay is the other process
// for both of them, so their bindings differ. Process numbers are those of a PID namespace. Between
// two namespaces the kernel gives the other process no number that both sides know, and proofs bind
// nothing.
func ServerBinding(c *sys.Conn) (Binding, error) {
	_, pid, err := sys.PeerUID(c)
	return processes(os.Getpid(), pid), err
}

// ClientBinding returns the client's Binding of the same socket.
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

// with returns the bytes that are bound if the other side is at a place. The proof covers both
// places as each side knows them, so a process in the middle cannot make them differ.
func (b Binding) with(theirs uint64) []byte {
	if theirs != b.place {
		return nil
	}
	return b.bytes
}
