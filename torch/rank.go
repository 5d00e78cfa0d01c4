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

	"github.com/shoal-mp/shoal/internal/safefile"
)

// ErrNoRank is wrapped if the environment does not define the rank of this process, which means
// that torchrun did not start it.
var ErrNoRank = errors.New(
	"torch: no rank in the environment: start the program with torchrun, which sets RANK, WORLD_SIZE, MASTER_ADDR " +
		"and MASTER_PORT")

// A Rank is this process as a rank of a torchrun job (torchrun --no-python ./program), alone or
// next to PyTorch ranks.
//
// A Rank is not a member of PyTorch's process group, because Go speaks neither Gloo nor NCCL: a
// PyTorch collective must not include it, or it would wait forever. A Rank coordinates with the
// others through the store, and exchanges tensors over connections. docs/torch.md has the recipe.
type Rank struct {
	Rank, WorldSize           int // among all processes of the job
	LocalRank, LocalWorldSize int // among the processes on this machine
	GroupRank                 int // the number of the machine
	Restart, MaxRestarts      int // how often torchrun has restarted all ranks, and the limit
	RunID                     string
	MasterAddr                string // "host:port" of the store
	AgentStore                bool   // torchrun itself serves the store, not rank 0

	Serves bool // whether this rank serves the store; set by Rendezvous

	// Store is the store of the job with the prefix shoal/<restart>, so that keys from before a
	// restart are not visible. In Python it is
	// PrefixStore(f"shoal/{os.environ['TORCHELASTIC_RESTART_COUNT']}", TCPStore(host, port)).
	Store *Store

	errorFile string
	rounds    rounds
}

// ReadRank returns the Rank defined by the environment variables of torchrun. It does not connect,
// so Store is nil. The error wraps [ErrNoRank] if a variable is missing or invalid.
func ReadRank() (*Rank, error) {
	e := environment{}
	r := &Rank{
		Rank: e.readInt("RANK", -1), WorldSize: e.readInt("WORLD_SIZE", -1),
		LocalRank: e.readInt("LOCAL_RANK", 0), LocalWorldSize: e.readInt("LOCAL_WORLD_SIZE", 1),
		GroupRank: e.readInt("GROUP_RANK", 0),
		Restart:   e.readInt("TORCHELASTIC_RESTART_COUNT", 0), MaxRestarts: e.readInt("TORCHELASTIC_MAX_RESTARTS", 0),
		RunID: os.Getenv("TORCHELASTIC_RUN_ID"), AgentStore: os.Getenv("TORCHELASTIC_USE_AGENT_STORE") == "True",
		errorFile: os.Getenv("TORCHELASTIC_ERROR_FILE"),
	}
	host, port := os.Getenv("MASTER_ADDR"), e.readInt("MASTER_PORT", -1)
	switch {
	case e.err != nil:
		return nil, e.err
	case host == "":
		return nil, fmt.Errorf("%w: MASTER_ADDR is not set", ErrNoRank)
	case port < 1 || port > 65535 || r.Rank >= r.WorldSize || r.LocalRank >= r.LocalWorldSize:
		return nil, fmt.Errorf("%w: out of range: rank %d of %d, local rank %d of %d, port %d", ErrNoRank, r.Rank,
			r.WorldSize, r.LocalRank, r.LocalWorldSize, port)
	}
	r.MasterAddr = net.JoinHostPort(host, strconv.Itoa(port))
	return r, nil
}

// environment reads integers from the environment, and keeps the first error in err, for the
// caller to check at the end.
type environment struct{ err error }

// readInt returns the value of a variable, which must be a non-negative integer. If the variable
// is not set, readInt returns other, or records an error if other is negative. The result is
// undefined after an error, which wraps [ErrNoRank].
func (e *environment) readInt(name string, other int) int {
	text, set := os.LookupEnv(name)
	n, err := strconv.Atoi(text)
	switch {
	case !set && other >= 0:
		return other
	case e.err != nil:
	case !set:
		e.err = fmt.Errorf("%w: %s is not set", ErrNoRank, name)
	case err != nil || n < 0:
		e.err = fmt.Errorf("%w: %s is %q, want a number of 0 or more", ErrNoRank, name, text)
	}
	return n
}

// Rendezvous reads the environment of torchrun and connects to the store of the job. The error
// wraps [ErrNoRank] or is a *[StoreError]. The caller must close the Rank.
//
// If torchrun does not serve the store (AgentStore is false), rank 0 serves it, as in PyTorch: it
// listens at [StoreOptions.Listen] until the Rank is closed. The other ranks wait for it until ctx
// is done.
func Rendezvous(ctx context.Context, o StoreOptions) (*Rank, error) {
	r, err := ReadRank()
	if err != nil {
		return nil, err
	}
	s, err := r.openStore(ctx, o)
	if err != nil {
		return nil, err
	}
	r.Store = s.Prefix(fmt.Sprintf("shoal/%d", r.Restart))
	return r, nil
}

// openStore serves the store if this rank has to, and otherwise connects to it. It sets
// r.Serves. The caller must close the store.
func (r *Rank) openStore(ctx context.Context, o StoreOptions) (*Store, error) {
	if r.Serves = r.Rank == 0 && !r.AgentStore; !r.Serves {
		return DialStore(ctx, r.MasterAddr, o)
	}
	if o.Listen == "" {
		o.Listen = r.MasterAddr
	}
	return ServeStore(context.WithoutCancel(ctx), o.Listen, o)
}

// Close closes the store, which must not be nil. If this rank serves the store, later calls of
// the other ranks fail; after a successful job the caller should call [Store.Drain] first.
func (r *Rank) Close() error { return r.Store.Close() }

// Record writes err to the error file of torchrun, so that torchrun reports it instead of
// "error_file: <N/A>", and returns err, joined with an error of writing the file. It does
// nothing but return err if err is nil or torchrun defined no error file. The format is the one
// of
// https://github.com/pytorch/pytorch/blob/v2.9.0/torch/distributed/elastic/multiprocessing/errors/error_handler.py.
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
		bad = safefile.Replace(r.errorFile, func(f *os.File) error { _, err := f.Write(b); return err })
	}
	return errors.Join(err, bad)
}
