package torch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/shoal-mp/shoal/internal/replace"
)

// ErrNoRank is wrapped where the environment does not say which rank this process is: torchrun has
// not started it.
var ErrNoRank = errors.New(
	"torch: no rank: torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for the programs that it starts")

// A Rank is this process as torchrun has started it (torchrun --no-python ./program), beside ranks
// of PyTorch or alone.
//
// It is no member of PyTorch's process group, since Go speaks neither Gloo nor NCCL: a collective
// that waited for it would wait for ever. It meets the others by the store, and takes tensors by
// connections. docs/torch.md has the recipe.
type Rank struct {
	Rank, WorldSize           int // of all processes of the job
	LocalRank, LocalWorldSize int // of those on this machine
	GroupRank                 int // the number of the machine
	Restart, MaxRestarts      int // how often torchrun has started all ranks anew, and how often it will
	RunID                     string
	MasterAddr                string // "host:port" of the store
	AgentStore                bool   // torchrun itself serves the store, and not rank 0

	Serves bool // this rank serves the store: see Rendezvous

	// Store is that of the job, with the prefix shoal/<restart>, so that what ranks of an earlier
	// start have left is not found. In Python it is
	// PrefixStore(f"shoal/{os.environ['TORCHELASTIC_RESTART_COUNT']}", TCPStore(host, port)).
	Store *Store

	errorFile string
	rounds    rounds
}

// ReadRank reads the environment that torchrun gives its programs, and connects to nothing: Store
// is nil. The error wraps ErrNoRank where a variable is missing or no number.
func ReadRank() (*Rank, error) {
	e := environment{}
	r := &Rank{
		Rank: e.number("RANK", -1), WorldSize: e.number("WORLD_SIZE", -1),
		LocalRank: e.number("LOCAL_RANK", 0), LocalWorldSize: e.number("LOCAL_WORLD_SIZE", 1),
		GroupRank: e.number("GROUP_RANK", 0),
		Restart:   e.number("TORCHELASTIC_RESTART_COUNT", 0), MaxRestarts: e.number("TORCHELASTIC_MAX_RESTARTS", 0),
		RunID: os.Getenv("TORCHELASTIC_RUN_ID"), AgentStore: os.Getenv("TORCHELASTIC_USE_AGENT_STORE") == "True",
		errorFile: os.Getenv("TORCHELASTIC_ERROR_FILE"),
	}
	host, port := os.Getenv("MASTER_ADDR"), e.number("MASTER_PORT", -1)
	switch {
	case e.err != nil:
		return nil, e.err
	case host == "":
		return nil, fmt.Errorf("%w: MASTER_ADDR is not set", ErrNoRank)
	case port < 1 || port > 65535 || r.Rank >= r.WorldSize || r.LocalRank >= r.LocalWorldSize:
		return nil, fmt.Errorf("%w: rank %d of %d, local rank %d of %d, port %d", ErrNoRank, r.Rank,
			r.WorldSize, r.LocalRank, r.LocalWorldSize, port)
	}
	r.MasterAddr = net.JoinHostPort(host, strconv.Itoa(port))
	return r, nil
}

// environment reads numbers, and keeps the first error.
type environment struct{ err error }

// number reads a natural number; where the variable is not set it is other, unless that is
// negative.
func (e *environment) number(name string, other int) int {
	text, set := os.LookupEnv(name)
	n, err := strconv.Atoi(text)
	switch {
	case !set && other >= 0:
		return other
	case e.err != nil:
	case !set:
		e.err = fmt.Errorf("%w: %s is not set", ErrNoRank, name)
	case err != nil || n < 0:
		e.err = fmt.Errorf("%w: %s is %q", ErrNoRank, name, text)
	}
	return n
}

// Rendezvous reads the environment, and connects to the store of the job. The caller closes the
// Rank.
//
// Where nobody else serves the store (AgentStore is false: there is no torchrun, or an old one),
// rank 0 does, as in PyTorch: it listens at StoreOptions.Listen, as long as it is not closed, and
// the others wait for it until the context ends.
func Rendezvous(ctx context.Context, o StoreOptions) (*Rank, error) {
	r, err := ReadRank()
	if err != nil {
		return nil, err
	}
	s, err := r.meet(ctx, o)
	if err != nil {
		return nil, err
	}
	r.Store = s.Prefix(fmt.Sprintf("shoal/%d", r.Restart))
	return r, nil
}

// meet serves the store of the job, if nobody else does, or connects to it.
func (r *Rank) meet(ctx context.Context, o StoreOptions) (*Store, error) {
	if r.Serves = r.Rank == 0 && !r.AgentStore; !r.Serves {
		return DialStore(ctx, r.MasterAddr, o)
	}
	if o.Listen == "" {
		o.Listen = r.MasterAddr
	}
	return ServeStore(context.WithoutCancel(ctx), o.Listen, o)
}

// Close closes the store, and ends it where this rank serves it: calls of the others fail then.
// Where the job went well, call Store.Drain before it.
func (r *Rank) Close() error { return r.Store.Close() }

// Record writes what has failed where torchrun looks for it, so that its report says so instead of
// "error_file: <N/A>". It returns err, for a program that ends with it. Without an error, and where
// torchrun has named no file, it does nothing.
func (r *Rank) Record(err error) error {
	if err == nil || r.errorFile == "" {
		return err
	}
	type extra struct {
		Stack     string `json:"py_callstack"`
		Timestamp string `json:"timestamp"`
	}
	type message struct {
		Message string `json:"message"`
		Extra   extra  `json:"extraInfo"`
	}
	text := fmt.Sprintf("%T: %v", err, err)
	b, bad := json.Marshal(map[string]message{"message": {text, extra{text, strconv.FormatInt(time.Now().Unix(), 10)}}})
	if bad == nil {
		bad = replace.Write(r.errorFile, func(f *os.File) error { _, err := f.Write(b); return err })
	}
	return errors.Join(err, bad)
}
