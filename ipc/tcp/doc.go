// Package tcp adds addresses on other machines to ipc.Listen and ipc.Dial. A program may import it
// for this side effect only:
//
//	import _ "github.com/shoal-mp/shoal/ipc/tcp"
//
//	func greet(ctx context.Context, key []byte) error {
//		l, err := ipc.Listen[string]("tcp://:7000", key)
//		if err != nil {
//			return err
//		}
//		defer l.Close()
//		c, err := l.Accept(ctx) // of ipc.Dial[string](ctx, "tcp://a:7000", key)
//		if err != nil {
//			return err
//		}
//		defer c.Close()
//		return c.Send(ctx, "hello")
//	}
//
// Start with [ipc.Listen], [ipc.Dial] and [Options].
//
// The connection is an *ipc.Conn as between local processes. Values are passed by copy, including
// tensors: each side has its own tensor and does not see the writes of the other. The elements of a
// tensor are read directly into the receiver's shared memory, so a tensor may have any size that
// fits into it.
//
// # Security
//
// The stream is encrypted with TLS 1.3. Both sides prove that they know the key, by HMAC-SHA256
// over a secret exported from their TLS connection, so a man in the middle cannot prove it to
// either side. The certificate therefore needs no certificate authority. The key must be hard to
// guess: it should consist of at least 16 random bytes. To verify the certificates of one or both
// sides as well, call ipc.ListenWith and ipc.DialWith with [Options] as the Transport. Options can
// also disable encryption, for networks that only trusted machines are connected to.
//
// This package imports package net, which makes a program link the C library if a C compiler is
// available. Package ipc does not import net.
//
// [ipc.Listen]: https://pkg.go.dev/github.com/shoal-mp/shoal/ipc#Listen
// [ipc.Dial]: https://pkg.go.dev/github.com/shoal-mp/shoal/ipc#Dial
package tcp
