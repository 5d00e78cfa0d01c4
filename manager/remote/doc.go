// Package remote serves a manager to processes on other machines that know a key, over TCP with
// TLS:
//
//	l, err := remote.Listen(m, ":7000", remote.Options{Key: key})                  // where the manager is
//	m, err := remote.Dial(ctx, "host:7000", remote.Options{Key: key})              // anywhere else
//
// Dial returns a manager like any other, except that values are copied, tensors as well: the server
// keeps one of its own, of any size for which its shared memory has room, and each caller gets
// another. Of a tensor that is a small part of its storage, a client sends that part; the server
// sends a storage up to the end of what is used of it. A call that would carry a queue, a lock or a
// file to another machine returns manager.ErrShared.
//
// # The key
//
// Both sides prove that they know the key, by HMAC-SHA256 over a secret that their TLS connection
// exports. An attacker in the middle has two connections with two secrets, and can prove neither.
// So the certificate needs no signature of an authority. Choose a key that cannot be guessed: 16
// random bytes or more. To check the certificate as well, set Options.Fingerprint or Options.TLS.
//
// This package imports package net, by which a program links the C library if a C compiler is
// found. Package manager does not import net.
package remote
