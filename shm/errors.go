package shm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/shoal-mp/shoal/internal/sentinel"
)

// Errors of shared memory. Returned errors may wrap them, so they should be tested with
// [errors.Is].
var (
	// ErrClosed is returned for a block, ring or domain that this process has closed. It wraps
	// os.ErrClosed.
	ErrClosed = sentinel.New("shm: closed", os.ErrClosed)
	// ErrStale is returned for a handle of a block that has been freed.
	ErrStale = errors.New("shm: stale handle, its block was freed")
	// ErrNoSpace is returned if the domain's byte budget or address space is exhausted. It is
	// wrapped in a *SpaceError.
	ErrNoSpace = errors.New("shm: no space")
	// ErrCorrupt is returned if shared memory contains a value that no process of this version
	// writes.
	ErrCorrupt = errors.New("shm: corrupt")
	// ErrVersion is returned if programs of different versions of Shoal share a domain, or if one
	// starts the other as its worker. The text contains both versions.
	ErrVersion = errors.New("shm: version mismatch")
	// ErrAddressSpace is returned if a process has not enough address space for Options.Reserve.
	ErrAddressSpace = errors.New("shm: not enough address space")
	// ErrTooManyInTransit is returned by a put of a block that is already in 4,095 unread messages.
	ErrTooManyInTransit = errors.New("shm: too many messages carry this block")
	// ErrTooManyParticipants is returned to a process that joins a domain with 256 processes.
	ErrTooManyParticipants = errors.New("shm: domain has 256 participants")
	// ErrToken is returned to a process that joins with a token other than the listener's.
	ErrToken = errors.New("shm: wrong token")
	// ErrUser is returned if a domain and the process that requests it belong to different users.
	ErrUser = errors.New("shm: domain belongs to another user")
	// ErrNamespace is returned to a process that joins from another PID or network namespace,
	// because the processes could neither wake nor monitor each other.
	ErrNamespace = errors.New("shm: domain is in another namespace")
	// ErrTooLarge is returned for a block that is larger than the domain's address space.
	ErrTooLarge = errors.New("shm: block exceeds the domain")
	// ErrFull is returned by TryPut on a ring without an empty slot.
	ErrFull = errors.New("shm: ring is full")
	// ErrEmpty is returned by TryGet on a ring without a message.
	ErrEmpty = errors.New("shm: ring is empty")
	// ErrFinished is returned by a put after Finish, or if there is no receiver left. It is
	// returned by a get if the ring is empty and a sender has called Finish, or there is no sender
	// left. It is wrapped in a *PeerError if the last process at the other end died.
	ErrFinished = errors.New("shm: ring is finished")
	// ErrLocked is returned by TryLock and TryAcquire if Lock and Acquire would block.
	ErrLocked = errors.New("shm: locked")
	// ErrNotOwner is returned by an Unlock of a lock that the caller does not hold.
	ErrNotOwner = errors.New("shm: not the holder of the lock")
	// ErrOwnerDied is returned together with a lock after its holder died. The caller holds the
	// lock; the guarded data may be inconsistent. It must repair the data and call MarkConsistent
	// before it unlocks.
	ErrOwnerDied = errors.New("shm: the dead process held the lock")
	// ErrNotRecoverable is returned for a lock after its holder died and the next holder unlocked
	// it without calling MarkConsistent.
	ErrNotRecoverable = errors.New("shm: the dead process held the lock, and its data was not marked consistent")
	// ErrBroken is returned by a barrier if a party died, gave up or called Abort.
	ErrBroken = errors.New("shm: barrier is broken")
	// ErrReleased is returned by a Release that would give a bounded semaphore more permits than it
	// had initially.
	ErrReleased = errors.New("shm: semaphore released too often")
	// ErrExist is returned by Bind for a name that is taken. It wraps fs.ErrExist.
	ErrExist = fmt.Errorf("shm: name is already bound: %w", fs.ErrExist)
	// ErrNotExist is returned by Lookup and Unlink for a name that is not bound. It wraps
	// fs.ErrNotExist.
	ErrNotExist = fmt.Errorf("shm: no such name: %w", fs.ErrNotExist)
	// ErrKeeper is returned if a descriptor is sent or received after the keeper has ended. The
	// keeper is the process that created the domain; it keeps the descriptors in transit. ErrKeeper
	// is also returned for a message if the keeper does not have its descriptor.
	ErrKeeper = errors.New("shm: descriptor lost, its keeper has ended or does not have it")
	// ErrTooManyFiles is returned if a descriptor is sent while 4,096 are in transit, or if the
	// keeper has reached its limit of open files. The program should receive the sent files, close
	// queues that will not be read, or raise the keeper's limit (ulimit -n).
	ErrTooManyFiles = errors.New("shm: too many descriptors in transit")
	// ErrName is returned for a name that is empty, longer than 192 bytes or not UTF-8.
	ErrName = errors.New("shm: invalid name")
	// ErrTooManyNames is returned by Bind in a domain that has 4,095 names.
	ErrTooManyNames = errors.New("shm: too many names")
)
