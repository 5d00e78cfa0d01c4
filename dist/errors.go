package dist

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/ipc"
)

// Sentinels of this package; the errors that it returns are or wrap them.
var (
	// ErrMismatch is returned to all ranks if they do not all make the same call on the same dtypes
	// and shapes. The group goes on.
	ErrMismatch = errors.New("dist: ranks make different calls")
	// ErrTensor is returned for tensors that a call cannot work on. The other ranks get
	// ErrMismatch, unless theirs are no better.
	ErrTensor = errors.New("dist: tensor does not fit the call")
	// ErrLeft is returned if a rank has closed its group.
	ErrLeft = errors.New("dist: closed by a rank")
	// ErrBroken is returned if a rank died, or did not come before its context or another's ended.
	ErrBroken = ipc.ErrBroken
	// ErrRank is returned by Join for a rank that is none or is taken, and by calls of a group that
	// was not joined.
	ErrRank = errors.New("dist: not a free rank")
	// ErrTag is returned for a tag below 0.
	ErrTag = errors.New("dist: not a tag")
	// ErrSize is returned for a group of too many ranks or too few.
	ErrSize = errors.New("dist: size of a group")
	// ErrClosed is returned after Close.
	ErrClosed = ipc.ErrClosed
)

// A worker's error is still ErrLeft where it is received.
func init() {
	wire.RegisterError("dist.ErrMismatch", ErrMismatch)
	wire.RegisterError("dist.ErrTensor", ErrTensor)
	wire.RegisterError("dist.ErrLeft", ErrLeft)
	wire.RegisterError("dist.ErrRank", ErrRank)
	wire.RegisterError("dist.ErrTag", ErrTag)
	wire.RegisterError("dist.ErrSize", ErrSize)
}

// A RankError says which other ranks are why a call failed.
type RankError struct {
	Call  string // of this rank, such as "all_reduce(sum) of float32 [3 4]"
	Ranks []int  // who died, left, called something else, or did not come in time; may be empty
	Err   error  // wraps a *shm.PeerError for the dead, ErrLeft, ErrMismatch, or ErrBroken and what ended the context
}

// Error says the call, the ranks and the reason.
func (e *RankError) Error() string {
	switch len(e.Ranks) {
	case 0:
		return fmt.Sprintf("dist: %s: %v", e.Call, e.Err)
	case 1:
		return fmt.Sprintf("dist: %s: rank %d: %v", e.Call, e.Ranks[0], e.Err)
	}
	return fmt.Sprintf("dist: %s: ranks %s: %v", e.Call, strings.Trim(fmt.Sprint(e.Ranks), "[]"), e.Err)
}

// Unwrap returns Err.
func (e *RankError) Unwrap() error { return e.Err }
