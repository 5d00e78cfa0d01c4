package torch

import (
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/sys"
)

// decodeConnection decodes rebuild_connection(descriptor, readable, writable) to a *[Conn].
func (i *importer) decodeConnection(o *pickle.Object) (any, error) {
	df, err := value.Arg[*pickle.Object](o, 0)
	if err != nil {
		return nil, err
	}
	readable, err := value.Arg[bool](o, 1)
	if err != nil {
		return nil, err
	}
	f, err := i.openDescriptor(df)
	if err != nil {
		return nil, err
	}
	c, err := connOf(f, readable, i.opts)
	if err == nil && i.child {
		c.child, c.peer = true, parentPeer()
	}
	return c, err
}

// connOf returns a connection over a socket or one end of a pipe, and takes ownership of f.
// readable selects the end of a pipe, and has no effect for a socket. connOf reopens a pipe,
// because the non-blocking flag belongs to the open file description, which other processes may
// share and expect to block. The error wraps [ErrProtocol] for any other kind of file.
func connOf(f *os.File, readable bool, opts Options) (*Conn, error) {
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if info.Mode()&os.ModeSocket != 0 {
		s, err := sys.SocketConn(f)
		if err != nil {
			return nil, err
		}
		return newConn(s, opts), nil
	}
	defer f.Close()
	if info.Mode()&os.ModeNamedPipe == 0 {
		return nil, protocolError("connection has file mode %v, want a socket or pipe", info.Mode())
	}
	mode := os.O_WRONLY
	if readable {
		mode = os.O_RDONLY
	}
	pipe, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), mode|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open pipe end: %w", err)
	}
	c := newConn(pipe, opts)
	c.reads, c.writes = readable, !readable
	return c, nil
}

// decodeSocket decodes _rebuild_socket(descriptor, family, type, proto) to a [net.Conn], which
// the caller must close.
func (i *importer) decodeSocket(o *pickle.Object) (any, error) {
	df, err := value.Arg[*pickle.Object](o, 0)
	if err != nil {
		return nil, err
	}
	f, err := i.fetch(df)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("receive socket: %w", err)
	}
	return c, nil
}

// encodeConnection encodes a connection, and lets closeTransferred close it here after the
// message is sent. The error wraps [ErrUnsupported] if its stream has no descriptor.
func (e *exporter) encodeConnection(c *Conn) (any, error) {
	o, err := e.encodeEnd(c)
	if err == nil {
		e.moved = append(e.moved, c)
	}
	return o, err
}

// encodeEnd encodes a connection that stays open in this process. The error wraps
// [ErrUnsupported] if its stream has no descriptor.
func (e *exporter) encodeEnd(c *Conn) (_ *pickle.Object, err error) {
	raw, ok := c.stream.(syscall.Conn)
	if !ok {
		return nil, unsupported("connection is a %T, which has no descriptor to send", c.stream)
	}
	var f *os.File
	if c.reads && c.writes {
		f, err = sys.Share(raw)
	} else {
		f, err = sys.ShareEnd(raw, c.writes)
	}
	if err != nil {
		return nil, fmt.Errorf("send connection: %w", err)
	}
	df, err := e.offerDescriptor(f)
	if err != nil {
		return nil, err
	}
	c.passed.Store(true)
	return encodeConnectionOn(df, c.reads, c.writes), nil
}

// encodeSocket encodes a socket of package net, and lets closeTransferred close it here after
// the message is sent. The error wraps [ErrUnsupported] if c has no descriptor.
func (e *exporter) encodeSocket(c net.Conn) (any, error) {
	raw, ok := c.(syscall.Conn)
	if !ok {
		return nil, unsupported("socket is a %T, which has no descriptor to send", c)
	}
	family, kind, protocol, err := sys.SocketKind(raw)
	if err != nil {
		return nil, fmt.Errorf("send %T: %w", c, err)
	}
	f, err := sys.Share(raw)
	if err != nil {
		return nil, fmt.Errorf("send %T: %w", c, err)
	}
	df, err := e.offerDescriptor(f)
	if err != nil {
		return nil, err
	}
	e.moved = append(e.moved, c)
	return &pickle.Object{Class: rebuildSocket, Args: python.Tuple{df, family, kind, protocol}}, nil
}

// encodeConnectionOn returns the encoding of a Connection on a descriptor. df is the encoded
// descriptor. reads and writes are the directions that the receiver may use.
func encodeConnectionOn(df *pickle.Object, reads, writes bool) *pickle.Object {
	return &pickle.Object{Class: rebuildConn, Args: python.Tuple{df, reads, writes}}
}

// encodeDescriptor encodes a duplicate of an open file; f stays open. In Python, detach() of the
// received object returns a descriptor.
func (e *exporter) encodeDescriptor(f *os.File) (any, error) {
	again, err := sys.Share(f)
	if err != nil {
		return nil, fmt.Errorf("send %s: %w", f.Name(), err)
	}
	return e.offerDescriptor(again)
}
