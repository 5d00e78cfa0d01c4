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

// Note [Keys of a rank] Calls that several ranks make together use these keys of the store, after
// the prefix of Rank.Store. So a script can do its part by set, add and wait:
//
//	barrier/<name>/<round>        a number, to which each rank adds 1
//	barrier/<name>/<round>/done   set by the rank that has made it as large as the number of members
//	gather/<name>/<round>/<rank>  what a rank gives
//	share/<name>                  where to connect: {"network": "unix", "address": "…", "authkey": "…"}, the key in hexadecimal
//
// A round is how often this rank has used the name before, from 0 on.

// rounds counts how often a name was used.
type rounds struct {
	mu   sync.Mutex
	next map[string]int
}

func (r *rounds) of(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = map[string]int{}
	}
	n := r.next[name]
	r.next[name]++
	return n
}

// Barrier waits until as many ranks as members says have called it under this name, as often as
// this rank has. The error is a *[StoreError]. If some ranks did not come in time, it wraps
// context.DeadlineExceeded.
func (r *Rank) Barrier(ctx context.Context, name string, members int) error {
	key := fmt.Sprintf("barrier/%s/%d", name, r.rounds.of("barrier/"+name))
	n, err := r.Store.Add(ctx, key, 1)
	if err != nil {
		return err
	}
	if n == int64(members) {
		return r.Store.Set(ctx, key+"/done", []byte("1"))
	}
	return r.Store.Wait(ctx, key+"/done")
}

// Gather gives a value of at most 8 MiB under a name, and returns the values that the ranks of a
// list have given, in the list's order. It waits for those ranks. A rank that is not in the list
// also gives a value and receives all. The error is a *[StoreError].
func (r *Rank) Gather(ctx context.Context, name string, value []byte, ranks ...int) ([][]byte, error) {
	prefix := fmt.Sprintf("gather/%s/%d/", name, r.rounds.of("gather/"+name))
	if err := r.Store.Set(ctx, prefix+strconv.Itoa(r.Rank), value); err != nil {
		return nil, err
	}
	keys := make([]string, len(ranks))
	for i, rank := range ranks {
		keys[i] = prefix + strconv.Itoa(rank)
	}
	return r.Store.MultiGet(ctx, keys...)
}

// GatherJSON gives a value, whose JSON has at most 8 MiB, under a name. It returns the values that
// the ranks of a list have given, in the list's order, and waits for those ranks. A script of
// Python gives its value by store.set(key, json.dumps(metrics)). The error is a *[StoreError], or
// says which rank's value is no T.
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
			return nil, fmt.Errorf("gather %s: what rank %d has given: %w", name, ranks[i], err)
		}
	}
	return values, nil
}

// A meeting has the address and the key for a connection to a rank.
type meeting struct {
	Network string `json:"network"`
	Address string `json:"address"`
	AuthKey string `json:"authkey"` // in hexadecimal
}

// Connect waits until a rank of this machine calls Listen under a name, and connects to that rank.
// It also connects to a multiprocessing.connection.Listener whose address a script has put into the
// store. Tensors that come over the connection are the same memory in both processes. The caller
// closes the connection.
func (r *Rank) Connect(ctx context.Context, name string, o Options) (*Conn, error) {
	text, err := r.Store.Get(ctx, "share/"+name)
	if err != nil {
		return nil, err
	}
	var at meeting
	if err := json.Unmarshal(text, &at); err != nil {
		return nil, fmt.Errorf("connect to what is shared as %s: %w", name,
			protocolError("it is %.100q: %v", text, err))
	}
	if o.AuthKey, err = hex.DecodeString(at.AuthKey); err != nil {
		return nil, fmt.Errorf("connect to what is shared as %s: %w", name, protocolError("its authkey: %v", err))
	}
	if after, abstract := strings.CutPrefix(at.Address, "\x00"); abstract {
		at.Address = "@" + after
	}
	c, err := Dial(ctx, at.Network, at.Address, o)
	if err != nil {
		return nil, fmt.Errorf("connect to what is shared as %s: %w", name, err)
	}
	return c, nil
}

// Listen lets the other ranks of this machine connect to this one under a name. Its Accept returns
// a connection for each rank that calls Connect, or Client in Python. Without Options.AuthKey
// Listen chooses a key. The caller closes the listener.
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
