// Package remote serves a manager to processes on other machines that know a key, over TCP with
// TLS.
//
//	func serve(m *manager.Manager, key []byte) (*remote.Listener, error) {
//		return remote.Listen(m, ":7000", remote.Options{Key: key})
//	}
//
//	func use(ctx context.Context, key []byte) error { // on another machine
//		m, err := remote.Dial(ctx, "host:7000", remote.Options{Key: key})
//		if err != nil {
//			return err
//		}
//		defer m.Close()
//		d, err := manager.Find[*manager.Dict[string, int]](ctx, m, "scores")
//		if err != nil {
//			return err
//		}
//		defer d.Close()
//		return d.Set(ctx, "a", 1)
//	}
//
// Start with [Listen], [Dial] and [manager.Find].
//
// Dial returns a manager that can be used like any other, except that values are copied, including
// tensors: the server keeps its own copy, of any size that fits into its shared memory, and each
// caller gets another. If a tensor is a small part of its storage, a client sends only that part;
// the server sends a storage up to the end of its used part. A call that would send a queue, a lock
// or a file to another machine returns manager.ErrShared.
//
// # The key
//
// Both sides prove that they know the key, by HMAC-SHA256 over a secret exported from their TLS
// connection. A man in the middle has two connections with different secrets, and cannot prove the
// key on either. The certificate therefore needs no certificate authority. The key must be hard to
// guess: it should consist of at least 16 random bytes. To verify the certificate as well, set
// Options.Fingerprint or Options.TLS.
//
// This package imports package net, which makes a program link the C library if a C compiler is
// available. Package manager does not import net.
package remote
