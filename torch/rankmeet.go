package torch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Note [Keys of a rank] Collective calls of ranks use the following keys, under the prefix of
// [Rank.Store]. A Python rank can take part in them with set, add and wait:
//
//	barrier/<name>/<round>        a number, to which each rank adds 1
//	barrier/<name>/<round>/done   set by the rank whose addition reaches the number of members
//	gather/<name>/<round>/<rank>  the value of a rank
//	share/<name>                  where to connect: {"network": "unix", "address": "…", "authkey": "…"}, the key in hexadecimal
//
// The round is the number of earlier calls with the same name on this rank, starting at 0.

// rounds counts the collective calls of this rank by name. The zero value is ready, and its
// methods may be called from several goroutines.
type rounds struct {
	mu   sync.Mutex
	next map[string]int
}

func (r *rounds) nextRound(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = map[string]int{}
	}
	n := r.next[name]
	r.next[name]++
	return n
}

// Barrier blocks until members ranks have called it with the same name, and as often as this rank
// has. The error is a *[StoreError]. It wraps [context.DeadlineExceeded] if some ranks did not
// arrive in time.
func (r *Rank) Barrier(ctx context.Context, name string, members int) error {
	key := fmt.Sprintf("barrier/%s/%d", name, r.rounds.nextRound("barrier/"+name))
	n, err := r.Store.Add(ctx, key, 1)
	if err != nil {
		return err
	}
	if n == int64(members) {
		return r.Store.Set(ctx, key+"/done", []byte("1"))
	}
	return r.Store.Wait(ctx, key+"/done")
}

// Gather publishes a value of at most 8 MiB under a name, and returns the values of the given
// ranks, in their order. It blocks until all of them have published, or ctx is done. The rank
// itself need not be in the list. The error is a *[StoreError], which wraps [ErrTooLong] for a
// larger value.
func (r *Rank) Gather(ctx context.Context, name string, value []byte, ranks ...int) ([][]byte, error) {
	prefix := fmt.Sprintf("gather/%s/%d/", name, r.rounds.nextRound("gather/"+name))
	if err := r.Store.Set(ctx, prefix+strconv.Itoa(r.Rank), value); err != nil {
		return nil, err
	}
	keys := make([]string, len(ranks))
	for i, rank := range ranks {
		keys[i] = prefix + strconv.Itoa(rank)
	}
	return r.Store.MultiGet(ctx, keys...)
}

// GatherJSON is [Rank.Gather] for values encoded as JSON, of at most 8 MiB each. A Python rank
// publishes its value with store.set(key, json.dumps(metrics)): see Note [Keys of a rank]. The
// error is a *[StoreError], or names the rank that published a value which does not decode as T.
func GatherJSON[T any](ctx context.Context, r *Rank, name string, value T, ranks ...int) ([]T, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("gather %s: %w", name, err)
	}
	texts, err := r.Gather(ctx, name, b, ranks...)
	if err != nil {
		return nil, err
	}
	values := make([]T, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &values[i]); err != nil {
			return nil, fmt.Errorf("gather %s: decode value of rank %d: %w", name, ranks[i], err)
		}
	}
	return values, nil
}

// A meeting is the address and the authkey of a listener, in the form stored under share/<name>.
type meeting struct {
	Network string `json:"network"`
	Address string `json:"address"`
	AuthKey string `json:"authkey"` // in hexadecimal
}

// Connect connects to the rank on this machine that called [Rank.Listen] with the same name, and
// waits until there is one. It also connects to a multiprocessing.connection.Listener that a
// script has published in the store. Both processes share the memory of tensors that are sent
// over the connection. The caller must close it. The error is a *[StoreError] if the store fails
// or ctx is done before there is a listener, and wraps [ErrProtocol] if the entry in the store
// is malformed. Connect uses the authkey in the entry, not [Options.AuthKey].
func (r *Rank) Connect(ctx context.Context, name string, o Options) (*Conn, error) {
	text, err := r.Store.Get(ctx, "share/"+name)
	if err != nil {
		return nil, err
	}
	var at meeting
	if err := json.Unmarshal(text, &at); err != nil {
		return nil, fmt.Errorf("connect to shared object %s: %w", name,
			protocolError("entry is %.100q: %v", text, err))
	}
	if o.AuthKey, err = hex.DecodeString(at.AuthKey); err != nil {
		return nil, fmt.Errorf("connect to shared object %s: %w", name, protocolError("decode authkey: %v", err))
	}
	if after, abstract := strings.CutPrefix(at.Address, "\x00"); abstract {
		at.Address = "@" + after
	}
	c, err := Dial(ctx, at.Network, at.Address, o)
	if err != nil {
		return nil, fmt.Errorf("connect to shared object %s: %w", name, err)
	}
	return c, nil
}

// Listen lets other ranks on this machine connect to this one under a name. [Listener.Accept]
// returns a connection for each rank that calls [Rank.Connect], or Client in Python. If
// [Options.AuthKey] is empty, Listen generates a key. Every client of the store can read the
// key. The caller must close the listener.
func (r *Rank) Listen(ctx context.Context, name string, o Options) (*Listener, error) {
	if len(o.AuthKey) == 0 {
		o.AuthKey = []byte(rand.Text())
	}
	l, err := Listen("unix", fmt.Sprintf("@shoal-%d-%s", os.Getpid(), rand.Text()), o)
	if err != nil {
		return nil, fmt.Errorf("share %s: %w", name, err)
	}
	at, err := json.Marshal(meeting{"unix", "\x00" + strings.TrimPrefix(l.Addr(), "@"), fmt.Sprintf("%x", o.AuthKey)})
	if err == nil {
		err = r.Store.Set(ctx, "share/"+name, at)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("share %s: %w", name, err)
	}
	return l, nil
}
