package nats

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/shoal-mp/shoal/internal/codec"
)

// A Store is a persistent key-value store at a broker, for any number of processes on any machines.
// Use it for the parameters of a model, or for the values of a manager without a server process
// that could fail. Each value has a version, and versions increase. [Store.CompareAndSwap] and
// [Store.Update] let several processes change one value without lost updates.
//
// Keys must consist of letters, digits and "-", "_", "/", "=", ".". A store persists until
// [Conn.DeleteStore]. Its methods may be called from several goroutines. The zero Store is closed.
type Store[T any] struct {
	c      *Conn
	name   string
	plan   *codec.Plan[T]
	unique string
	ids    atomic.Uint64

	kv       jetstream.KeyValue
	messages jetstream.Stream // stream of kv
	large    chunks
}

// StoreOptions configure a store. The first process that opens a store creates it; a zero option
// then means the default. Processes that open an existing store may leave options zero; other
// values must match the store, or [OpenStore] returns [ErrOptions].
type StoreOptions struct {
	// MaxBytes limits the stored bytes. It applies separately to values in single messages and to
	// values in chunks; default unlimited.
	MaxBytes int64
	// Replicas is the number of brokers in a cluster that store each value: 1, 3 or 5; default 3 in
	// a cluster. A Set returns when a majority has stored it.
	Replicas int
	// InMemory makes the brokers store the values in memory instead of on disk.
	InMemory bool
}

// An Entry is a value of a [Store] with its key.
type Entry[T any] struct {
	Key     string
	Value   T         // the zero value if the key was deleted
	Version uint64    // greater than the version of every earlier change in the store
	Time    time.Time // time of the change, by the broker's clock
	Deleted bool
}

// OpenStore opens the named store and creates it if it does not exist. The name must have 1 to 64
// letters, digits, "-" and "_". A store needs no Close.
//
// The error wraps [wire.ErrType] if T cannot be encoded, or [ErrOptions] if the name or an option
// is invalid. Errors of the broker are [*HostError] and wrap [ErrOptions], [ErrType] or
// [ErrStorage] where these apply.
func OpenStore[T any](ctx context.Context, c *Conn, name string, opts StoreOptions) (*Store[T], error) {
	plan, err := codec.PlanOf[T]()
	q := QueueOptions{MaxBytes: opts.MaxBytes, Replicas: opts.Replicas}
	if err == nil && (!isToken(name) || len(name) > mostName) {
		err = fmt.Errorf("%[1]w: name %[3]q, want 1 to %[2]d letters, digits, - and _", ErrOptions, mostName, name)
	}
	if err == nil {
		err = q.check()
	}
	if err != nil {
		return nil, fmt.Errorf("nats: open store: %w", err)
	}
	s := &Store[T]{c: c, name: name, plan: plan, unique: nuid.Next()}
	if err := s.open(ctx, codec.FullName(reflect.TypeFor[T]()), opts); err != nil {
		return nil, hostError("open store "+name, c.Host(), err)
	}
	return s, nil
}

func storeChunks(name string) string { return "SHOAL_S_" + name }

func (s *Store[T]) open(ctx context.Context, elem string, opts StoreOptions) (err error) {
	if err := s.c.awaitConnection(ctx); err != nil {
		return err
	}
	config := jetstream.KeyValueConfig{Bucket: s.name, Description: "store " + s.name + " of " + elem, History: 1,
		MaxBytes: -1, Replicas: s.c.replicaCount(opts.Replicas), Metadata: map[string]string{typeKey: elem}}
	if opts.MaxBytes > 0 {
		config.MaxBytes = opts.MaxBytes
	}
	if opts.InMemory {
		config.Storage = jetstream.MemoryStorage
	}
	s.kv, err = retryRequest(ctx, s.c, func(ctx context.Context) (jetstream.KeyValue, error) {
		kv, err := s.c.js.KeyValue(ctx, s.name)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			if kv, err = s.c.js.CreateKeyValue(ctx, config); errors.Is(err, jetstream.ErrBucketExists) {
				kv, err = s.c.js.KeyValue(ctx, s.name)
			}
		}
		return kv, err
	})
	if err != nil {
		return err
	}
	if s.messages, err = s.c.lookupStream(ctx, s.streamName()); err != nil {
		return err
	}
	has := s.messages.CachedInfo().Config
	if err := opts.checkStream(has, elem); err != nil {
		return err
	}
	if has.AllowDirect && has.Replicas > 1 { // a replica may lag, but a Get must see an earlier Set
		has.AllowDirect = false
		s.messages, err = retryRequest(ctx, s.c, func(ctx context.Context) (jetstream.Stream, error) {
			return s.c.js.UpdateStream(ctx, has)
		})
		if err != nil {
			return err
		}
	}
	s.large = chunks{s.c, storeChunks(s.name), jetstream.StreamConfig{Name: storeChunks(s.name),
		Subjects: []string{"shoal.s." + s.name + ".>"}, Description: "large values of store " + s.name,
		Storage: has.Storage, Replicas: has.Replicas, MaxMsgs: -1, MaxBytes: has.MaxBytes, MaxMsgsPerSubject: 1,
		Discard: jetstream.DiscardNew, AllowDirect: true}}
	return s.large.sweepUnreferenced(ctx, "shoal.s."+s.name+".*.*", s.referenceChecker(ctx))
}

func (o StoreOptions) checkStream(has jetstream.StreamConfig, elem string) error {
	return QueueOptions{MaxBytes: o.MaxBytes, Replicas: o.Replicas, InMemory: o.InMemory}.checkStream(has, elem)
}

func (s *Store[T]) streamName() string { return "KV_" + s.name }

// prefix returns the subject prefix of the chunks of a key's values.
func (s *Store[T]) prefix(key string) string {
	return "shoal.s." + s.name + "." + base64.RawURLEncoding.EncodeToString([]byte(key))
}

// referenceChecker returns a function that reports whether the current value of a key references
// the chunks of an id. The key is decoded from the prefix; for one that cannot be decoded it
// returns true.
func (s *Store[T]) referenceChecker(ctx context.Context) func(prefix, id string) (bool, error) {
	return func(prefix, id string) (bool, error) {
		key, err := base64.RawURLEncoding.DecodeString(prefix[strings.LastIndexByte(prefix, '.')+1:])
		if err != nil {
			return true, nil
		}
		now, err := s.currentMessage(ctx, string(key))
		return now.chunks == id, err
	}
}

func (s *Store[T]) checkOpen(op string) error {
	if s == nil || s.c == nil || s.c.closed.Load() {
		return fmt.Errorf("nats: %s: %w", op, ErrClosed)
	}
	return nil
}

// wrapError adds the operation and the key to err. Errors of the broker become a [*HostError].
// It returns nil for nil.
func (s *Store[T]) wrapError(op, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrInvalidKey):
		return fmt.Errorf("nats: %s %q: %w: want a key of letters, digits and - _ / = and dots", op, key, ErrOptions)
	case errors.Is(err, ErrVersion), errors.Is(err, ErrExist), errors.Is(err, ErrNotExist), errors.Is(err, ErrShared):
		return fmt.Errorf("nats: %s %q: %w", op, key, err)
	}
	return hostError(fmt.Sprintf("%s %q in store %s", op, key, s.name), s.c.Host(), err)
}

// A currentValue is the latest message of a key.
type currentValue struct {
	version uint64 // version, also of a deleted key; 0 if the key never had a value
	data    []byte // payload, or nil if there is no value
	chunks  string // id of its chunks, or empty
}

// currentMessage returns the latest message of a key from the stream's leader. It returns no
// error if the key has no value, and [jetstream.ErrInvalidKey] if the key is invalid.
func (s *Store[T]) currentMessage(ctx context.Context, key string) (now currentValue, err error) {
	if !validKey(key) {
		return now, jetstream.ErrInvalidKey
	}
	m, err := retryRequest(ctx, s.c, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.messages.GetLastMsgForSubject(ctx, s.subject(key))
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return now, nil
	case err != nil:
		return now, err
	}
	now.version = m.Sequence
	if m.Header.Get("KV-Operation") == "" {
		now.data = m.Data
	}
	if l, inChunks, err := largeOf(now.data); err == nil && inChunks {
		now.chunks = l.id
	}
	return now, nil
}

func (s *Store[T]) subject(key string) string { return "$KV." + s.name + "." + key }

// Get returns the value of a key and its version. The caller must close the shared memory that the
// value holds. It returns [ErrNotExist] if the key has no value.
func (s *Store[T]) Get(ctx context.Context, key string) (v T, version uint64, err error) {
	if err := s.checkOpen("get"); err != nil {
		return v, 0, err
	}
	for begun := time.Now(); ; {
		now, err := s.currentMessage(ctx, key)
		if err == nil && now.data == nil {
			err = ErrNotExist
		}
		if err != nil {
			return v, 0, s.wrapError("get", key, s.contextError(ctx, err))
		}
		v, err = s.read(ctx, key, now.version, now.data)
		if errors.Is(err, errMissing) && time.Since(begun) < s.c.timeout*4 {
			continue // the value was replaced during the read
		}
		return v, now.version, s.wrapError("get", key, s.contextError(ctx, err))
	}
}

// contextError returns the error of ctx, with the store's name, if err is not nil and ctx has
// ended, and otherwise err.
func (s *Store[T]) contextError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return contextError(ctx, "store "+s.name, nil)
	}
	return err
}

// read decodes a value of a key from the payload data of its message and from its chunks, if it
// has any. The caller must close the shared memory that the value holds. It returns [errMissing]
// if the chunks were deleted because the value was replaced; the caller should look up the key
// again.
func (s *Store[T]) read(ctx context.Context, key string, version uint64, data []byte) (v T, err error) {
	l, inChunks, err := largeOf(data)
	switch {
	case err != nil:
		return v, err
	case inChunks:
		look, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go s.watchReplaced(look, key, version, cancel)
		v, err = decodeLarge(look, s.plan, s.large, s.prefix(key), l)
		if err != nil && ctx.Err() == nil && errors.Is(context.Cause(look), errMissing) {
			err = errMissing
		}
		return v, err
	}
	return decode(s.plan, data)
}

// watchReplaced polls the key until it has another version, and then cancels a read of chunks
// with [errMissing]. Otherwise the read would wait for the deleted chunks until its timeout. It
// returns when ctx ends.
func (s *Store[T]) watchReplaced(ctx context.Context, key string, version uint64, cancel context.CancelCauseFunc) {
	for pause := 50 * time.Millisecond; sleep(ctx, pause) == nil; pause = min(2*pause, time.Second) {
		if now, err := s.currentMessage(ctx, key); err == nil && now.version != version {
			cancel(errMissing)
			return
		}
	}
}

// Set sets the value of a key and returns its version. v is copied; the caller must still close it.
// It returns [ErrStorage] if the store or the broker is full; it may also return the errors of
// [Queue.Put].
func (s *Store[T]) Set(ctx context.Context, key string, v T) (version uint64, err error) {
	return s.write(ctx, "set", key, v, nil)
}

// Create sets the value of a key that has none and returns its version. It returns [ErrExist] if
// the key has a value. Otherwise it behaves as [Store.Set].
func (s *Store[T]) Create(ctx context.Context, key string, v T) (version uint64, err error) {
	version, err = s.write(ctx, "create", key, v, func(now currentValue) error {
		if now.data != nil {
			return ErrExist
		}
		return nil
	})
	if errors.Is(err, ErrVersion) {
		return 0, s.wrapError("create", key, ErrExist)
	}
	return version, err
}

// CompareAndSwap sets the value of a key if its current version equals version, and returns the new
// version. Version 0 means that the key must have no value. It returns [ErrVersion] if the version
// differs. After [ErrUncertain] the value may have been set.
func (s *Store[T]) CompareAndSwap(ctx context.Context, key string, version uint64, v T) (uint64, error) {
	return s.write(ctx, "compare and swap", key, v, func(now currentValue) error {
		if now.version != version && !(version == 0 && now.data == nil) {
			return fmt.Errorf("%w: got version %d, want %d", ErrVersion, now.version, version)
		}
		return nil
	})
}

// Update sets the value of a key to the result of change, and calls change again if another process
// changed the key meanwhile. change receives the current value, or the zero value and version 0 if
// there is none. Update returns an error of change, wrapped. Update closes neither the argument nor
// the result of change: change must close the values of a failed attempt when it is called again.
func (s *Store[T]) Update(ctx context.Context, key string,
	change func(v T, version uint64) (T, error)) (version uint64, err error) {
	for {
		v, version, err := s.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotExist) {
			return 0, err
		}
		if v, err = change(v, version); err != nil {
			return 0, fmt.Errorf("nats: update %q: %w", key, err)
		}
		version, err = s.CompareAndSwap(ctx, key, version, v)
		if !errors.Is(err, ErrVersion) {
			return version, err
		}
	}
}

// write sets a value and returns its version. may, if not nil, is called with the current value
// and may veto the write with an error. If the value changes between that call and the write,
// the error is [ErrVersion].
func (s *Store[T]) write(ctx context.Context, op, key string, v T, may func(currentValue) error) (uint64, error) {
	if err := s.checkOpen(op); err != nil {
		return 0, err
	}
	if !validKey(key) {
		return 0, s.wrapError(op, key, jetstream.ErrInvalidKey)
	}
	if ctx.Err() != nil {
		return 0, contextError(ctx, op, nil)
	}
	o, err := encode(s.plan, v)
	var version uint64
	if err == nil {
		version, err = s.put(ctx, key, o, may)
	}
	o.releaseValue(err == nil)
	keepAlive(v)
	return version, s.wrapError(op, key, s.contextError(ctx, err))
}

func (s *Store[T]) put(ctx context.Context, key string, o *outgoing,
	may func(currentValue) error) (version uint64, err error) {
	id := s.unique + strconv.FormatUint(s.ids.Add(1), 36)
	inline := o.size <= s.c.mostInline()
	if may == nil && inline {
		return s.putMessage(ctx, key, id, o.appendPayload(make([]byte, 0, o.size)), nil)
	}
	now, err := s.currentMessage(ctx, key)
	if err == nil && may != nil {
		err = may(now)
	}
	if err != nil {
		return 0, err
	}
	var data []byte
	var l large
	if inline {
		data = o.appendPayload(make([]byte, 0, o.size))
	} else {
		if err := s.large.createStream(ctx); err != nil {
			return 0, err
		}
		if l, err = s.large.writePieces(ctx, s.prefix(key), chunkID(id), o, wrapStorageError); err != nil {
			s.deleteUnstored(ctx, key, l.id)
			return 0, err
		}
		data = l.appendReference(nil)
	}
	for {
		version, err = s.putMessage(ctx, key, id, data, &now.version)
		if err == nil || may != nil || !errors.Is(err, ErrVersion) {
			break
		}
		if now, err = s.currentMessage(ctx, key); err != nil {
			break
		}
	}
	switch {
	case err == nil && now.chunks != "":
		s.large.deletePieces(ctx, s.prefix(key), now.chunks)
	case err != nil && l.id != "" && !errors.Is(err, ErrUncertain):
		s.deleteUnstored(ctx, key, l.id)
	}
	if err == nil && l.id != "" {
		if err := s.large.ensureStored(ctx, s.prefix(key), l, o, wrapStorageError,
			s.referenceChecker(ctx)); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrUncertain, err)
		}
	}
	return version, err
}

func wrapStorageError(err error) error { return wrapBoth(ErrStorage, err) }

// deleteUnstored deletes the chunks of a value that was not stored, even if ctx has ended.
func (s *Store[T]) deleteUnstored(ctx context.Context, key, id string) {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.c.timeout)
	defer cancel()
	s.large.deletePieces(after, s.prefix(key), id)
}

// putMessage stores the message of a key and returns its version. It returns [ErrVersion] if
// expected is not nil and the key has another version. The message id makes retries idempotent.
func (s *Store[T]) putMessage(ctx context.Context, key, id string, data []byte, expected *uint64) (uint64, error) {
	w := newWrite(s.subject(key), id, data)
	if expected != nil {
		w.m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(*expected, 10))
		w.m.Header.Set(client.MsgIdHdr, id+" "+strconv.FormatUint(*expected, 10))
	}
	stored, err := s.c.finishWrite(ctx, w, s.checkDeleted)
	switch {
	case isAPIError(codeOtherVersion)(err):
		return 0, fmt.Errorf("%w: the version is no longer %d", ErrVersion, *expected)
	case isFull(err):
		return 0, wrapBoth(ErrStorage, err)
	}
	return stored.Sequence, storageError(err)
}

// checkDeleted returns [ErrClosed] if the store was deleted, and nil otherwise, even if the broker
// does not answer.
func (s *Store[T]) checkDeleted(ctx context.Context) error {
	if _, err := s.c.lookupStream(ctx, s.streamName()); errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w: the store was deleted", ErrClosed)
	}
	return nil
}

func validKey(key string) bool {
	for i, r := range key {
		if !isToken(string(r)) && !strings.ContainsRune("/=", r) && !(r == '.' && i > 0 && i < len(key)-1) {
			return false
		}
	}
	return key != "" && !strings.Contains(key, "..")
}

// Delete deletes the value of a key. It returns nil if the key has none.
func (s *Store[T]) Delete(ctx context.Context, key string) error {
	if err := s.checkOpen("delete"); err != nil {
		return err
	}
	if !validKey(key) {
		return s.wrapError("delete", key, jetstream.ErrInvalidKey)
	}
	now, err := s.currentMessage(ctx, key)
	if err == nil && now.data != nil {
		_, err = retryRequest(ctx, s.c, func(ctx context.Context) (any, error) { return nil, s.kv.Delete(ctx, key) })
	}
	if err == nil && now.chunks != "" {
		s.large.deletePieces(ctx, s.prefix(key), now.chunks)
	}
	return s.wrapError("delete", key, s.contextError(ctx, err))
}

// Keys returns the keys that have values, sorted, or nil if there are none.
func (s *Store[T]) Keys(ctx context.Context) ([]string, error) {
	if err := s.checkOpen("keys"); err != nil {
		return nil, err
	}
	keys, err := retryRequest(ctx, s.c, func(ctx context.Context) ([]string, error) { return s.kv.Keys(ctx) })
	if errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, nil
	}
	slices.Sort(keys)
	return keys, s.wrapError("keys", "*", s.contextError(ctx, err))
}

// Watch returns an iterator over the current values of the keys and then over each change, in
// order of version. keys may contain NATS wildcards, such as "layer.*" and "model.>"; without
// keys, Watch selects all. The caller must close the shared memory that the values hold. If
// large values change faster than the loop runs, intermediate values may be skipped. An error,
// including the end of ctx, is yielded once and ends the loop.
func (s *Store[T]) Watch(ctx context.Context, keys ...string) iter.Seq2[Entry[T], error] {
	return func(yield func(Entry[T], error) bool) {
		fail := func(err error) {
			yield(Entry[T]{}, s.wrapError("watch", strings.Join(keys, ", "), s.contextError(ctx, err)))
		}
		if err := s.checkOpen("watch"); err != nil {
			yield(Entry[T]{}, err)
			return
		}
		if len(keys) == 0 {
			keys = []string{">"}
		}
		w, err := s.kv.WatchFiltered(ctx, keys)
		if err != nil {
			fail(err)
			return
		}
		defer w.Stop()
		for {
			select {
			case e, open := <-w.Updates():
				if !open {
					fail(ErrClosed)
					return
				}
				if e == nil { // marks the end of the initial values
					continue
				}
				entry, err := s.decodeEntry(ctx, e)
				if errors.Is(err, errMissing) {
					continue // replaced; the update with the newer value follows
				}
				if err != nil {
					fail(err)
					return
				}
				if !yield(entry, nil) {
					return
				}
			case <-ctx.Done():
				fail(context.Cause(ctx))
				return
			}
		}
	}
}

// decodeEntry decodes a change. It waits for the chunks of a large value until ctx is done. It
// returns [errMissing] if the value was replaced; the watcher then reports the newer value.
func (s *Store[T]) decodeEntry(ctx context.Context, e jetstream.KeyValueEntry) (Entry[T], error) {
	entry := Entry[T]{Key: e.Key(), Version: e.Revision(), Time: e.Created()}
	if e.Operation() != jetstream.KeyValuePut {
		entry.Deleted = true
		return entry, nil
	}
	v, err := s.read(ctx, e.Key(), e.Revision(), e.Value())
	entry.Value = v
	return entry, err
}

// DeleteStore deletes a store with all its values, for all processes. It returns nil if the store
// does not exist.
func (c *Conn) DeleteStore(ctx context.Context, name string) error {
	return hostError("delete store "+name, c.Host(), c.deleteStreams(ctx, "KV_"+name, storeChunks(name)))
}
