// Package tcp lets ipc.Listen and ipc.Dial have addresses on other machines. A program may import
// it for that alone:
//
//	import _ "github.com/shoal-mp/shoal/ipc/tcp"
//
//	l, err := ipc.Listen[*tensor.Tensor]("tcp://:7000", key)              // on one machine
//	c, err := ipc.Dial[*tensor.Tensor](ctx, "tcp://host:7000", key)       // on another
//
// The connection is the same *ipc.Conn. Values go by copy, tensors as well: each side has its own,
// and what one writes the other does not see. The bytes of a tensor are read straight into the
// receiver's shared memory, so it can be of any size for which that has room.
//
// The stream is encrypted by TLS 1.3. Both sides prove that they know the key, by HMAC-SHA256 over
// a secret that their TLS connection exports, so an attacker in the middle can prove it to neither.
// Choose a key that cannot be guessed: 16 random bytes or more. So the certificate needs no
// signature of an authority. To check the certificates of one or both sides as well, give both
// calls [Options]. They can also leave out the encryption, for networks that only trusted machines
// are on.
//
// This package imports package net, by which a program links the C library if a C compiler is
// found. Package ipc does not import net.
package tcp
