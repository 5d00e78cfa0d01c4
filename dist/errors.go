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
	// ErrMismatch is returned to all ranks if their calls, dtypes or shapes differ. The group can
	// be used again.
	ErrMismatch = errors.New("dist: ranks make different calls")
	// ErrTensor is returned to a rank whose tensors do not fit the call, such as one that is not
	// contiguous. Ranks whose tensors do fit get ErrMismatch.
	ErrTensor = errors.New("dist: tensor does not fit the call")
	// ErrLeft is returned if a rank has closed its group.
	ErrLeft = errors.New("dist: closed by a rank")
	// ErrBroken is returned if a rank died, or the context of a rank ended before all ranks came.
	ErrBroken = ipc.ErrBroken
	// ErrRank is returned by Join for a rank that is taken or out of range, and by calls of a group
	// that was not joined.
	ErrRank = errors.New("dist: not a free rank")
	// ErrTag is returned for a tag below 0.
	ErrTag = errors.New("dist: not a tag")
	// ErrSize is returned for a group of fewer than 1 or more than 256 ranks.
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
	wire.RegisterType[*RankError]("dist.RankError")
	wire.RegisterError("dist.ErrEngine", ErrEngine)
}

// A RankError says which other ranks made a call fail, and why.
type RankError struct {
	Call  string // the call of this rank, such as "all_reduce(sum) of float32 [3 4]"
	Ranks []int  // ranks that died, left, made another call, or did not come; empty if they are unknown
	Err   error  // wraps *shm.PeerErrors of the dead, ErrLeft, ErrMismatch, or ErrBroken and the error of a context
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
