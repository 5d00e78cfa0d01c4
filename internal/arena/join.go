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

// Join joins the domain that listens at addr, for a process that has not inherited it. addr and
// token must come from a [Listener] that [Domain.Listen] returned. The caller must close the
// domain. The death of this process is noticed by the other participants, as for any other
// participant.
//
// Join fails when ctx ends, or after five seconds without an answer. The error wraps [ErrToken],
// [ErrUser], [ErrVersion], [ErrNamespace] or [ErrTooManyParticipants] if one of these is the
// reason.
func Join(ctx context.Context, addr string, token Token) (*Domain, error) {
	d, err := joinAddress(ctx, addr, token)
	if err != nil {
		err = fmt.Errorf("join domain at %s: %w", addr, err)
		if to, ok := ctx.Value(joinErrorKey{}).(*error); ok {
			*to = err
		}
		return nil, err
	}
	return d, nil
}

type joinErrorKey struct{}

// WithJoinError returns a context with which Join stores its error in to. ipc.Dial does not return
// that error: it passes values by copy then.
func WithJoinError(ctx context.Context, to *error) context.Context {
	return context.WithValue(ctx, joinErrorKey{}, to)
}

// joinAddress is Join without the context in the error.
func joinAddress(ctx context.Context, addr string, token Token) (*Domain, error) {
	var files []*os.File
	err := callListener(ctx, addr, encodeRequest(wantJoin, token), func(c *sys.Conn) (err error) {
		files, err = receiveFiles(c)
		return err
	})
	if err != nil {
		return nil, err
	}
	d, err := Attach(files[0], files[1])
	if err != nil {
		return nil, errors.Join(err, closeFiles(files))
	}
	return d, nil
}

// callListener connects to addr, sends req and has readAnswer read the answer, all before ctx ends
// and within [handshakeTime]. It sends the request, which may contain the token, only to a process
// of this user; otherwise the error wraps [ErrUser].
func callListener(ctx context.Context, addr string, req [requestSize]byte, readAnswer func(*sys.Conn) error) error {
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
	err = checkSameUser(c)
	if err == nil {
		c.Write(req[:]) // no check: a peer that has closed may have sent the reason before
		err = readAnswer(c)
	}
	if err != nil {
		return joinCause(ctx, err)
	}
	return nil
}

// checkSameUser returns an error that wraps [ErrUser] if the peer's process belongs to another
// user. The check is needed because any user may bind an abstract name after its listener has
// ended. The kernel records the credentials of both ends at connect(2) and listen(2):
// https://man7.org/linux/man-pages/man7/unix.7.html (SO_PEERCRED).
func checkSameUser(c *sys.Conn) error {
	uid, _, err := sys.PeerUID(c)
	if err == nil && uid != os.Getuid() {
		err = fmt.Errorf("%w: its user is %d", ErrUser, uid)
	}
	return err
}

// joinCause joins the cause of ctx to err if ctx has ended.
func joinCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return errors.Join(cause, err)
	}
	return err
}

// receiveFiles reads the answer to a join. It returns the control file and the data file, which the
// caller must close.
func receiveFiles(c *sys.Conn) ([]*os.File, error) {
	var a [answerSize]byte
	n, files, err := sys.RecvFiles(c, a[:], 2)
	if err == nil {
		_, err = io.ReadFull(c, a[n:])
	}
	if err == nil {
		err = statusError(a)
	}
	if err == nil && len(files) != 2 {
		err = fmt.Errorf("%w: got %d files, want 2", ErrCorrupt, len(files))
	}
	if err != nil {
		return nil, errors.Join(err, closeFiles(files))
	}
	return files, nil
}

// statusError returns the error that an answer reports, or nil.
func statusError(a [answerSize]byte) error {
	switch a[0] {
	case statusOK:
		return checkNamespaces(a)
	case statusToken:
		return ErrToken
	case statusUser:
		return ErrUser
	case statusInspectOnly:
		return fmt.Errorf("%w: the socket only answers inspection", errors.ErrUnsupported)
	case statusVersion:
		return otherVersion(uint64(binary.LittleEndian.Uint32(a[4:])), binary.LittleEndian.Uint64(a[8:]))
	}
	return fmt.Errorf("%w: reply has unknown status %d", ErrCorrupt, a[0])
}

// checkNamespaces returns an error that wraps [ErrNamespace] if the answering process has another
// network or PID namespace: doorbells are names in the network namespace, and pidfds are opened by
// process ID. The number 0 stands for a namespace that could not be read, and is not compared.
func checkNamespaces(a [answerSize]byte) error {
	for i, kind := range []string{"net", "pid"} {
		theirs, ours := binary.LittleEndian.Uint64(a[16+8*i:]), namespaceID(kind)
		if theirs != ours && theirs != 0 && ours != 0 {
			return fmt.Errorf("%w: %s", ErrNamespace, kind)
		}
	}
	return nil
}

// closeFiles closes files and returns all errors.
func closeFiles(files []*os.File) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}
