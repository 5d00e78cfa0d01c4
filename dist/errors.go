package dist

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
)

// The errors of this package. Returned errors may wrap them; test with [errors.Is].
var (
	// ErrMismatch is returned to all ranks if their calls, dtypes or shapes differ. The group stays
	// usable.
	ErrMismatch = errors.New("dist: ranks make different calls")
	// ErrTensor is returned to a rank if its tensors do not fit the call, for example because one
	// is not contiguous. The other ranks get [ErrMismatch].
	ErrTensor = errors.New("dist: invalid tensor for the call")
	// ErrLeft is returned if a rank that the call needs has closed its group.
	ErrLeft = errors.New("dist: a rank closed its group")
	// ErrBroken is returned if a rank died, or if the context of a rank ended before all ranks had
	// made the call.
	ErrBroken = ipc.ErrBroken
	// ErrRank is returned by [Group.Join] for a rank that is taken or out of range, and by calls on
	// a group before Join.
	ErrRank = errors.New("dist: rank not available")
	// ErrTag is returned for a negative tag.
	ErrTag = errors.New("dist: invalid tag")
	// ErrSize is returned by [NewGroup] for a size below 1 or above 256.
	ErrSize = errors.New("dist: invalid group size")
	// ErrClosed is returned by calls on a closed group.
	ErrClosed = ipc.ErrClosed
)

// init registers the errors, so that [errors.Is] also matches them after they crossed processes.
func init() {
	codec.RegisterError("dist.ErrMismatch", ErrMismatch)
	codec.RegisterError("dist.ErrTensor", ErrTensor)
	codec.RegisterError("dist.ErrLeft", ErrLeft)
	codec.RegisterError("dist.ErrRank", ErrRank)
	codec.RegisterError("dist.ErrTag", ErrTag)
	codec.RegisterError("dist.ErrSize", ErrSize)
	codec.RegisterType[*RankError]("dist.RankError")
	codec.RegisterError("dist.ErrEngine", ErrEngine)
}

// A RankError reports a call that failed because of other ranks.
type RankError struct {
	Call  string // the call of this rank, such as "all_reduce(sum) of float32 [3 4]"
	Ranks []int  // ranks that died, left, made another call, or did not come; empty if unknown
	Err   error  // wraps *shm.PeerError, ErrLeft, ErrMismatch, or ErrBroken and a context's error
}

// Error returns the call, the ranks and the reason.
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
