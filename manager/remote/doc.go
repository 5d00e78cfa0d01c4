// Package remote serves a manager to processes on other machines that know a key, over TCP with
// TLS:
//
//	l, err := remote.Listen(m, ":7000", remote.Options{Key: key})                  // where the manager is
//	m, err := remote.Dial(ctx, "host:7000", remote.Options{Key: key})              // anywhere else
//
// What Dial returns is a manager like any other, but that values go by copy: shared memory, such as
// a tensor's, stays in its machine, and a call that would move it returns manager.ErrShared.
//
// # The key
//
// Both sides prove that they know the key, by HMAC-SHA256 over a secret of their very TLS
// connection. So a certificate that nobody has signed does: an attacker in the middle has two
// connections with two secrets, and can prove neither. Choose a key that cannot be guessed, 16
// random bytes or more. To check the certificate as well, set Options.Fingerprint or Options.TLS.
//
// Package net makes a program link the C library where there is a C compiler; package manager does
// without.
package remote
