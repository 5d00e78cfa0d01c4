package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/shoal-mp/shoal/internal/link/secure"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
	"github.com/shoal-mp/shoal/tensor"
)

// measureTensor measures the transfer of one large tensor over the loopback interface with and
// without encryption. It is compared with copying the same bytes between slices with plain
// crypto/tls and with TCP and writev.
func (c *benchCommand) measureTensor(ctx context.Context) (err error) {
	size := 128 << 20
	if c.Quick {
		size = 1 << 20
	}
	var ours []way
	own, mb := map[string]int{"both_ends": 0}, tensorTimes*float64(size)/1e6
	for _, opts := range []tcp.Options{{}, {Unencrypted: true}} {
		w, end, err := tensorWay(ctx, size, opts)
		if err != nil {
			return err
		}
		defer end()
		ours = append(ours, way{"tensor", w, own})
	}
	cert, err := secure.SelfSigned()
	if err != nil {
		return err
	}
	var bare []way
	for _, name := range []string{"tls", "tcp"} {
		from, to, err := newLoopback(ctx)
		if err != nil {
			return err
		}
		defer from.Close()
		defer to.Close()
		if name == "tls" {
			from = tls.Client(from, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
				DynamicRecordSizingDisabled: true})
			to = tls.Server(to, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13,
				DynamicRecordSizingDisabled: true})
		}
		header, data, got := make([]byte, 64), make([]byte, size), make([]byte, 64+size)
		for i := range data { // unwritten pages all map to one cached zero page
			data[i], got[i] = 1, 1
		}
		bare = append(bare, way{name, func(context.Context) (float64, error) {
			return measureCopy(size, func() error {
				buffers := net.Buffers{header, data} // uses writev where the connection supports it
				_, err := buffers.WriteTo(from)
				return err
			}, func() error {
				_, err := io.ReadFull(to, got)
				return err
			})
		}, own})
	}
	if err := c.compare(ctx, "remote_tensor", "MB/s", mb, append(ours[:1:1], bare...)...); err != nil {
		return err
	}
	return c.compare(ctx, "remote_tensor_unencrypted", "MB/s", mb, ours[1], bare[1])
}

// tensorWay returns a function that measures the transfer of a tensor of size bytes with package
// ipc in MB/s. Unless err is set, the caller must call end, which closes the connection.
func tensorWay(ctx context.Context, size int, opts tcp.Options) (measure func(context.Context) (float64, error),
	end func() error, err error) {
	l, err := ipc.ListenWith[*tensor.Tensor]("tcp://127.0.0.1:0", measureKey, ipc.MeetingOptions{Transport: opts})
	if err != nil {
		return nil, nil, err
	}
	open := []io.Closer{l}
	closeAll := func() (err error) {
		for _, c := range open {
			err = errors.Join(err, c.Close())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll())
		}
	}()
	from, err := ipc.DialWith[*tensor.Tensor](ctx, l.Addr(), measureKey, ipc.MeetingOptions{Transport: opts})
	if err != nil {
		return nil, nil, err
	}
	open = append(open, from)
	to, err := l.Accept(ctx)
	if err != nil {
		return nil, nil, err
	}
	open = append(open, to)
	x, err := tensor.NewShared(tensor.Uint8, size)
	if err != nil {
		return nil, nil, err
	}
	open = append(open, x)
	x.Fill(1)
	return func(ctx context.Context) (float64, error) {
		return measureCopy(size, func() error { return from.Send(ctx, x) }, func() error {
			y, err := to.Recv(ctx)
			if err != nil {
				return err
			}
			return y.Close()
		})
	}, closeAll, nil
}

// newLoopback returns both ends of a new loopback connection. The caller must close them.
func newLoopback(ctx context.Context) (from, to net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if from, err = (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if to, err = l.Accept(); err != nil {
		return nil, nil, errors.Join(err, from.Close())
	}
	return from, to, nil
}

// tensorTimes is the number of transfers in one measurement.
const tensorTimes = 4

// measureCopy calls send and receive concurrently, tensorTimes times, and returns the rate in
// MB/s. Each call must transfer size bytes.
func measureCopy(size int, send, receive func() error) (float64, error) {
	begin := time.Now()
	for range tensorTimes {
		sent := make(chan error, 1)
		go func() { sent <- send() }()
		err := receive()
		if err := errors.Join(err, <-sent); err != nil {
			return 0, err
		}
	}
	return tensorTimes * float64(size) / time.Since(begin).Seconds() / 1e6, nil
}
