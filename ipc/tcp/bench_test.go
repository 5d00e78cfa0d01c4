package tcp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/shoal-mp/shoal/internal/link/secure"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// BenchmarkSend has a tensor of 128 MiB copied over loopback: as a tensor, with and without
// encryption, by TLS from one slice to another, and by TCP with writev.
func BenchmarkSend(b *testing.B) {
	const size = 128 << 20
	for name, opts := range map[string]tcp.Options{"tensor": {}, "tensor_unencrypted": {Unencrypted: true}} {
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			l, err := ipc.ListenWith[*tensor.Tensor]("tcp://127.0.0.1:0", key, ipc.MeetingOptions{Transport: opts})
			testutil.NoError(b, err)
			defer l.Close()
			from, err := ipc.DialWith[*tensor.Tensor](ctx, l.Addr(), key, ipc.MeetingOptions{Transport: opts})
			testutil.NoError(b, err)
			defer from.Close()
			to, err := l.Accept(ctx)
			testutil.NoError(b, err)
			defer to.Close()
			x, err := tensor.NewShared(tensor.Uint8, size)
			testutil.NoError(b, err)
			defer x.Close()
			x.Fill(1)
			copied(b, size, func() error { return from.Send(ctx, x) }, func() error {
				y, err := to.Recv(ctx)
				if err != nil {
					return err
				}
				return y.Close()
			})
		})
	}
	cert, err := secure.SelfSigned()
	testutil.NoError(b, err)
	for name, encrypted := range map[string]bool{"TLS": true, "TCP": false} {
		b.Run(name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			testutil.NoError(b, err)
			defer l.Close()
			from, err := net.Dial("tcp", l.Addr().String())
			testutil.NoError(b, err)
			defer from.Close()
			to, err := l.Accept()
			testutil.NoError(b, err)
			defer to.Close()
			if encrypted {
				from = tls.Client(from, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
				to = tls.Server(to, &tls.Config{Certificates: []tls.Certificate{cert}})
			}
			header, data, got := make([]byte, 64), make([]byte, size), make([]byte, 64+size)
			copy(data, bytes.Repeat([]byte{1}, size)) // memory that nobody has written is one page of zeroes
			send := func() error {
				buffers := net.Buffers{header, data} // writev where there is one
				_, err := buffers.WriteTo(from)
				return err
			}
			copied(b, size, send, func() error { _, err := io.ReadFull(to, got); return err })
		})
	}
}

// copied measures how fast what is sent is received.
func copied(b *testing.B, size int64, send, receive func() error) {
	b.SetBytes(size)
	sent := make(chan error, 1)
	for b.Loop() {
		go func() { sent <- send() }()
		testutil.NoError(b, receive())
		testutil.NoError(b, <-sent)
	}
}
