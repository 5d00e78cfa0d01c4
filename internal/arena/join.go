package arena

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Join joins the domain whose [Listener] has the address addr and the token, for a process that has
// not inherited it. Join ends with ctx, or when the other side does not answer for five seconds.
// The error wraps ErrToken, ErrUser, ErrVersion, ErrNamespace or ErrTooManyParticipants where one
// of these is the reason. The caller closes the domain. The other participants notice the death of
// this process as they notice that of their children.
func Join(ctx context.Context, addr string, token Token) (*Domain, error) {
	d, err := join(ctx, addr, token)
	if err != nil {
		return nil, fmt.Errorf("join domain at %s: %w", addr, err)
	}
	return d, nil
}

func join(ctx context.Context, addr string, token Token) (*Domain, error) {
	var files []*os.File
	err := call(ctx, addr, requestOf(wantJoin, token), func(c *sys.Conn) (err error) {
		files, err = receive(c)
		return err
	})
	if err != nil {
		return nil, err
	}
	d, err := Attach(files[0], files[1])
	if err != nil {
		return nil, errors.Join(err, closeAll(files))
	}
	return d, nil
}

// call connects, checks that the peer is of this user, since only this user may know the token,
// sends the request and has hear read the answer, all before ctx ends.
func call(ctx context.Context, addr string, req [requestSize]byte, hear func(*sys.Conn) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	c, err := sys.Dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	err = sameUser(c)
	if err == nil {
		c.Write(req[:]) // a peer that has closed already may have sent the reason
		err = hear(c)
	}
	if err != nil {
		return because(ctx, err)
	}
	return nil
}

// sameUser returns an error where another user's process listens at the other end: the abstract
// name of a listener that has ended is free for everybody.
func sameUser(c *sys.Conn) error {
	uid, _, err := sys.PeerUID(c)
	if err == nil && uid != os.Getuid() {
		err = fmt.Errorf("%w: user %d", ErrUser, uid)
	}
	return err
}

// because adds the cause of ctx's end.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return errors.Join(cause, err)
	}
	return err
}

// receive reads the answer to a join and returns the control and the data file.
func receive(c *sys.Conn) ([]*os.File, error) {
	var a [answerSize]byte
	n, files, err := sys.RecvFiles(c, a[:], 2)
	if err == nil {
		_, err = io.ReadFull(c, a[n:])
	}
	if err == nil {
		err = judge(a)
	}
	if err == nil && len(files) != 2 {
		err = fmt.Errorf("%w: %d files instead of 2", ErrCorrupt, len(files))
	}
	if err != nil {
		return nil, errors.Join(err, closeAll(files))
	}
	return files, nil
}

// judge turns an answer into an error.
func judge(a [answerSize]byte) error {
	switch a[0] {
	case statusOK:
		return sameNamespaces(a)
	case statusToken:
		return ErrToken
	case statusUser:
		return ErrUser
	case statusInspectOnly:
		return fmt.Errorf("%w: the socket only answers inspection", errors.ErrUnsupported)
	case statusVersion:
		return otherVersion(uint64(binary.LittleEndian.Uint32(a[4:])), binary.LittleEndian.Uint64(a[8:]))
	}
	return fmt.Errorf("%w: answer of status %d", ErrCorrupt, a[0])
}

// sameNamespaces: doorbells are names in the network namespace, and participants know each other by
// process number. A number that could not be read is 0 and says nothing.
func sameNamespaces(a [answerSize]byte) error {
	for i, kind := range []string{"net", "pid"} {
		theirs, ours := binary.LittleEndian.Uint64(a[16+8*i:]), namespace(kind)
		if theirs != ours && theirs != 0 && ours != 0 {
			return fmt.Errorf("%w: %s", ErrNamespace, kind)
		}
	}
	return nil
}

func closeAll(files []*os.File) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}
