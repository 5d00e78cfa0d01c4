package shm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Sentinels of this package; the errors that it returns wrap them.
var (
	// ErrClosed is returned for a block, ring or domain that this process has closed. It
	// wraps os.ErrClosed; %.0w wraps without a word, since it is no file.
	ErrClosed = fmt.Errorf("shm: closed%.0w", os.ErrClosed)
	// ErrStale is returned for a handle whose block was freed since the handle was made.
	ErrStale = errors.New("shm: handle of a block that was freed")
	// ErrNoSpace is returned when the domain's byte budget or its address space is used up; it
	// comes as *SpaceError.
	ErrNoSpace = errors.New("shm: no space")
	// ErrCorrupt is returned when shared memory holds what no participant writes.
	ErrCorrupt = errors.New("shm: corrupt")
	// ErrVersion is returned by a domain that another version of this package laid out.
	ErrVersion = errors.New("shm: domain of another version")
	// ErrAddressSpace is returned when a process cannot map the domain's reserve.
	ErrAddressSpace = errors.New("shm: not enough address space")
	// ErrTooManyInTransit is returned by a put on a block that 4,095 queued messages carry already.
	ErrTooManyInTransit = errors.New("shm: too many messages carry this block")
	// ErrTooManyParticipants is returned to a process that joins a domain of 256.
	ErrTooManyParticipants = errors.New("shm: domain has 256 participants")
	// ErrToken is returned by Join for a token that is not the listener's.
	ErrToken = errors.New("shm: wrong token")
	// ErrUser is returned where a domain and the process that asks for it belong to different
	// users.
	ErrUser = errors.New("shm: domain of another user")
	// ErrNamespace is returned by Join where the processes could neither wake nor watch each other.
	ErrNamespace = errors.New("shm: domain in another namespace")
	// ErrTooLarge is returned for a block larger than the domain's address space.
	ErrTooLarge = errors.New("shm: larger than the domain")
	// ErrFull is returned by TryPut on a ring without an empty slot.
	ErrFull = errors.New("shm: ring is full")
	// ErrEmpty is returned by TryGet on a ring without a message.
	ErrEmpty = errors.New("shm: ring is empty")
	// ErrFinished is returned by a put after Finish or after the last receiver went, and by a get
	// that has drained a ring after Finish or after its last sender went: in a *PeerError if that
	// one died.
	ErrFinished = errors.New("shm: ring is finished")
	// ErrLocked is returned by a try that would have to wait: for a lock, or for a permit.
	ErrLocked = errors.New("shm: locked")
	// ErrNotOwner is returned by an Unlock of a lock that the caller does not hold.
	ErrNotOwner = errors.New("shm: not the holder of the lock")
	// ErrOwnerDied comes with a lock whose holder died: what it guards may be half done.
	ErrOwnerDied = errors.New("shm: it held the lock")
	// ErrNotRecoverable is returned for a lock whose holder died and whose next holder did not say
	// that all is well.
	ErrNotRecoverable = errors.New("shm: it held the lock, and what that guards was not made consistent")
	// ErrBroken is returned by a barrier that not everybody will come to.
	ErrBroken = errors.New("shm: barrier is broken")
	// ErrReleased is returned by a Release that would give a bounded semaphore more permits than it
	// was made with.
	ErrReleased = errors.New("shm: semaphore released too often")
	// ErrExist is returned by Bind for a name that is taken. It wraps fs.ErrExist.
	ErrExist = fmt.Errorf("shm: name is taken: %w", fs.ErrExist)
	// ErrNotExist is returned by Lookup and Unlink for a name that nobody has bound. It wraps
	// fs.ErrNotExist.
	ErrNotExist = fmt.Errorf("shm: no such name: %w", fs.ErrNotExist)
	// ErrKeeper is returned for a descriptor where the process that made the domain, which keeps
	// those that are under way, has ended, and for a block for which it keeps none.
	ErrKeeper = errors.New("shm: nobody keeps the descriptor")
	// ErrTooManyFiles is returned where a descriptor is sent while 4,096 are under way, or the
	// process that keeps them has no room for another: receive what was sent, close what will not
	// be, or raise the limit of open files there (ulimit -n).
	ErrTooManyFiles = errors.New("shm: too many descriptors are under way")
	// ErrName is returned for a name that is empty, longer than MaxName or not UTF-8.
	ErrName = errors.New("shm: not a name")
	// ErrTooManyNames is returned by Bind in a domain that has MaxNames names.
	ErrTooManyNames = errors.New("shm: too many names")
)
