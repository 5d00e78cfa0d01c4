//go:build cgo && linux

package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/wire"
)

// Note [Handover] A process that exports an object listens at a random abstract address with a
// random key (package ipc proves the key, and that the peer has the same user). An importer joins
// the domain if it has none, connects, sends a request, and gets the object as a message, which
// holds it meanwhile. The exporter holds it until then.

// A request asks a registry for the object of an export, or for the object that had a handle at a
// fork. A reply has an object or the text of an error. Both go through one type of connection.
type request struct {
	Export uint64
	Nonce  []byte
	Fork   uint64
	Handle uint64

	Object  any
	Refusal string
	Missing bool // the refusal is errNotFound
}

func init() { wire.RegisterType[request]("libshoal.request") }

const (
	mostExports    = 65536
	defaultExpiry  = time.Hour
	handoverTime   = 10 * time.Second // of one import
	mostImportUses = 65535
)

// An export is an object that a token names, with one use of the object. The registry's mu
// guards it.
type export struct {
	object *object
	nonce  [16]byte
	uses   int
	expiry *time.Timer
}

// A registry holds the exports of this process and the listeners for importers. The process has
// one, for any goroutine.
type registry struct {
	mu       sync.Mutex
	listener *ipc.Listener[request]
	domain   *arena.Listener
	base     token // without id and nonce
	last     uint64
	byID     map[uint64]*export
	closed   bool
}

var exports = registry{byID: make(map[uint64]*export)}

// start makes the listeners unless they exist. The caller must hold r.mu. The error wraps
// [ipc.ErrClosed] after close.
func (r *registry) start() error {
	if r.closed {
		return fmt.Errorf("%w: this process has left its domain", ipc.ErrClosed)
	}
	if r.listener != nil {
		return nil
	}
	if err := requireDomain(); err != nil {
		return err
	}
	d, err := arena.Default()
	if err != nil {
		return err
	}
	var name [12]byte
	rand.Read(name[:])
	rand.Read(r.base.key[:])
	domain, err := d.Listen(arena.ListenOptions{})
	if err != nil {
		return err
	}
	r.base.domain, r.base.joinAddr = domain.Token(), domain.Addr()
	l, err := ipc.Listen[request](fmt.Sprintf("@shoal-%d-%s", os.Getpid(), hex.EncodeToString(name[:])), r.base.key[:])
	if err != nil {
		return errors.Join(err, domain.Close())
	}
	r.base.address = l.Addr()
	r.listener, r.domain = l, domain
	go r.serve(l)
	return nil
}

// add exports an object for a number of imports and returns its token, which is valid for
// lifetime. The export holds a use of the object of its own. The error wraps errTooLarge if too
// many exports are outstanding, and errHandle if the object is released already.
func (r *registry) add(o *object, uses int, lifetime time.Duration) (token, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.start(); err != nil {
		return token{}, err
	}
	if len(r.byID) >= mostExports {
		return token{}, fmt.Errorf("%w: %d exports are outstanding: import them, or export with a shorter lifetime",
			errTooLarge, len(r.byID))
	}
	if !o.retain() {
		return token{}, fmt.Errorf("%w: the handle was closed by another thread", errHandle)
	}
	r.last++
	e := &export{object: o, uses: uses}
	t := r.base
	t.id = r.last
	rand.Read(e.nonce[:])
	t.nonce = e.nonce
	e.expiry = time.AfterFunc(lifetime, func() { r.discardExport(t.id) })
	r.byID[t.id] = e
	return t, nil
}

// ticket returns the token that a forked child needs to connect. It names no export.
func (r *registry) ticket() (token, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.start()
	return r.base, err
}

// discardExport ends the export with an id: its token becomes invalid, and its reference to the
// object is dropped. It does nothing if the export has ended before.
func (r *registry) discardExport(id uint64) {
	r.mu.Lock()
	e := r.byID[id]
	delete(r.byID, id)
	r.mu.Unlock()
	if e != nil {
		e.expiry.Stop()
		e.object.release()
	}
}

// use counts an import and returns the object of an export. The caller must release it. The
// error wraps errNotFound if there is no export with this id and nonce.
func (r *registry) use(id uint64, nonce []byte) (*object, error) {
	r.mu.Lock()
	e := r.byID[id]
	if e == nil || subtle.ConstantTimeCompare(nonce, e.nonce[:]) != 1 || !e.object.retain() {
		r.mu.Unlock()
		return nil,
			fmt.Errorf("%w: the token was imported before, has expired, or is not from this process", errNotFound)
	}
	e.uses--
	last := e.uses == 0
	r.mu.Unlock()
	if last {
		r.discardExport(id)
	}
	return e.object, nil
}

func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// close ends all exports and the listeners. Later exports fail with [ipc.ErrClosed].
func (r *registry) close() {
	r.mu.Lock()
	r.closed = true
	l, d := r.listener, r.domain
	ids := make([]uint64, 0, len(r.byID))
	for id := range r.byID {
		ids = append(ids, id)
	}
	r.mu.Unlock()
	for _, id := range ids {
		r.discardExport(id)
	}
	if l != nil {
		l.Close()
		d.Close()
	}
}

// serve answers importers until the listener is closed.
func (r *registry) serve(l *ipc.Listener[request]) {
	for {
		c, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			ctx, cancel := context.WithTimeout(context.Background(), handoverTime)
			defer cancel()
			r.answer(ctx, c)
		}()
	}
}

// answer answers the requests of one importer until the connection fails or ctx ends.
func (r *registry) answer(ctx context.Context, c *ipc.Conn[request]) {
	for {
		q, err := c.Recv(ctx)
		if err != nil {
			return
		}
		o, err := r.objectFor(q)
		var reply request
		if err != nil {
			reply.Refusal, reply.Missing = err.Error(), errors.Is(err, errNotFound)
		} else {
			reply.Object = o.value
		}
		err = c.Send(ctx, reply)
		if o != nil {
			o.release()
		}
		if err != nil && c.Send(ctx, request{Refusal: err.Error()}) != nil {
			return
		}
	}
}

// objectFor returns the object that a request names. The caller must release it. The error wraps
// errNotFound if there is none.
func (r *registry) objectFor(q request) (*object, error) {
	if q.Fork != 0 {
		return forks.find(q.Fork, handle(q.Handle))
	}
	return r.use(q.Export, q.Nonce)
}

// importObject imports the object that q names from the process of the token, and returns a new
// handle of it. It joins the token's domain first if this process has none. The error wraps
// errDomain if the process is in another domain, and errNotFound if the object is gone or its
// process has ended.
func importObject(ctx context.Context, t token, q request) (handle, error) {
	if err := joinByToken(ctx, t.joinAddr, t.domain); err != nil {
		return 0, fmt.Errorf("import: %w", explainJoin(err))
	}
	c, err := ipc.Dial[request](ctx, t.address, t.key[:])
	if err != nil {
		return 0, fmt.Errorf("import: %w", err)
	}
	defer c.Close()
	if !c.Shared() {
		return 0, fmt.Errorf("import: %w: the exporter is in another domain than this process: import before "+
			"other functions",
			errDomain)
	}
	if err := c.Send(ctx, q); err != nil {
		return 0, fmt.Errorf("import: %w", explainEnd(err))
	}
	reply, err := c.Recv(ctx)
	if err != nil {
		return 0, fmt.Errorf("import: %w", explainEnd(err))
	}
	switch {
	case reply.Missing:
		return 0, fmt.Errorf("import: %w: %s", errNotFound, reply.Refusal)
	case reply.Object == nil:
		return 0, fmt.Errorf("import: %w: the exporter refuses: %s", codec.ErrFormat, reply.Refusal)
	}
	return addObject(reply.Object)
}

// explainEnd returns err, and adds errNotFound to the error of a connection that the exporter
// ended.
func explainEnd(err error) error {
	if errors.Is(err, ipc.ErrClosed) {
		return fmt.Errorf("%w: the exporter has ended: %w", errNotFound, err)
	}
	return err
}

// explainJoin returns err, and adds errToken if the exporter's domain rejects the token.
func explainJoin(err error) error {
	if errors.Is(err, arena.ErrToken) {
		return fmt.Errorf("%w: %w", errToken, err)
	}
	return err
}
