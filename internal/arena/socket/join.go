package socket

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/shm"
)

// Join asks the listener at addr for its domain's control file and data file. It sends the token
// only to a process of this user. The caller must close the files.
//
// Join fails when ctx ends, or after five seconds without an answer. The error wraps
// [shm.ErrToken], [shm.ErrUser], [shm.ErrVersion] or [shm.ErrNamespace] if one of these is the
// reason.
func Join(ctx context.Context, addr string, layout Layout, token Token) (files []*os.File, err error) {
	err = callListener(ctx, addr, EncodeRequest(WantJoin, layout, token), func(c *sys.Conn) (err error) {
		files, err = receiveFiles(c, layout)
		return err
	})
	return files, err
}

// Request asks the listener at addr for the answer to WantInspect or WantObserve. It reads
// at most limit bytes of it. The error wraps [ErrSilent] if the listener closed the connection
// without an answer, and [shm.ErrUser] if it belongs to another user. Request fails when ctx
// ends, or after five seconds without an answer.
func Request(ctx context.Context, addr string, want byte, layout Layout, limit int64) (answer []byte, err error) {
	err = callListener(ctx, addr, EncodeRequest(want, layout, Token{}), func(c *sys.Conn) (err error) {
		answer, err = io.ReadAll(io.LimitReader(c, limit))
		switch {
		case len(answer) == answerSize && answer[0] == statusUser:
			return shm.ErrUser // whatever err is: the peer has closed without reading the request
		case len(answer) == 0 && err == nil:
			return ErrSilent
		}
		return err
	})
	return answer, err
}

// ErrSilent means that the peer closed the connection without an answer.
var ErrSilent = errors.New("no answer")

// callListener connects to addr, sends req and has readAnswer read the answer, all before ctx ends
// and within [handshakeTime]. It sends the request, which may contain the token, only to a process
// of this user; otherwise the error wraps [shm.ErrUser].
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
	err = CheckSameUser(c)
	if err == nil {
		c.Write(req[:]) // no check: a peer that has closed may have sent the reason before
		err = readAnswer(c)
	}
	if err != nil {
		return joinCause(ctx, err)
	}
	return nil
}

// CheckSameUser returns an error that wraps [shm.ErrUser] if the peer's process belongs to another
// user. The check is needed because any user may bind an abstract name after its listener has
// ended. The kernel records the credentials of both ends at connect(2) and listen(2):
// https://man7.org/linux/man-pages/man7/unix.7.html (SO_PEERCRED).
func CheckSameUser(c *sys.Conn) error {
	uid, _, err := sys.PeerUID(c)
	if err == nil && uid != os.Getuid() {
		err = fmt.Errorf("%w: its user is %d", shm.ErrUser, uid)
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

// receiveFiles reads the answer to a join. It returns the control file and the data file, which
// the caller must close. It returns the errors of [AnswerError], and [shm.ErrCorrupt] if the
// files are missing.
func receiveFiles(c *sys.Conn, layout Layout) ([]*os.File, error) {
	var a [answerSize]byte
	n, files, err := sys.RecvFiles(c, a[:], 2)
	if err == nil {
		_, err = io.ReadFull(c, a[n:])
	}
	if err == nil {
		err = AnswerError(a, layout)
	}
	if err == nil && len(files) != 2 {
		err = fmt.Errorf("%w: got %d files, want 2", shm.ErrCorrupt, len(files))
	}
	if err != nil {
		return nil, errors.Join(err, CloseFiles(files))
	}
	return files, nil
}

// AnswerError returns the error that an answer to a join reports to a program with the given
// layout, or nil. The error wraps [shm.ErrToken], [shm.ErrUser], [shm.ErrVersion] or
// [shm.ErrNamespace]; [errors.ErrUnsupported] if the socket is not for joining; or
// [shm.ErrCorrupt] if the status is unknown.
func AnswerError(a [answerSize]byte, layout Layout) error {
	switch a[0] {
	case statusOK:
		return checkNamespaces(a)
	case statusToken:
		return shm.ErrToken
	case statusUser:
		return shm.ErrUser
	case statusInspectOnly:
		return fmt.Errorf("%w: the socket only answers inspection", errors.ErrUnsupported)
	case statusVersion:
		return layout.Mismatch(Layout{uint64(binary.LittleEndian.Uint32(a[4:])), binary.LittleEndian.Uint64(a[8:])})
	}
	return fmt.Errorf("%w: reply has unknown status %d", shm.ErrCorrupt, a[0])
}

// checkNamespaces returns an error that wraps [shm.ErrNamespace] if the answering process has
// another network or PID namespace: doorbells are names in the network namespace, and pidfds are
// opened by process ID. The number 0 stands for a namespace that could not be read, and is not
// compared.
func checkNamespaces(a [answerSize]byte) error {
	for i, kind := range []string{"net", "pid"} {
		theirs, ours := binary.LittleEndian.Uint64(a[16+8*i:]), namespaceID(kind)
		if theirs != ours && theirs != 0 && ours != 0 {
			return fmt.Errorf("%w: %s", shm.ErrNamespace, kind)
		}
	}
	return nil
}

// CloseFiles closes files and returns all errors.
func CloseFiles(files []*os.File) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}
