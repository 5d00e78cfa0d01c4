package shm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Sentinels of this package; the errors that it returns wrap them.
var (
	// ErrClosed is returned for a block, ring or domain that this process has closed. It wraps
	// os.ErrClosed; %.0w leaves out the text of os.ErrClosed, which speaks of a file.
	ErrClosed = fmt.Errorf("shm: closed%.0w", os.ErrClosed)
	// ErrStale is returned for a handle whose block was freed since the handle was made.
	ErrStale = errors.New("shm: handle of a block that was freed")
	// ErrNoSpace is returned when the domain's byte budget or its address space is used up; it
	// comes as *SpaceError.
	ErrNoSpace = errors.New("shm: no space")
	// ErrCorrupt is returned when shared memory holds a value that no process of this version
	// writes.
	ErrCorrupt = errors.New("shm: corrupt")
	// ErrVersion is returned where programs of two versions of Shoal meet: where one of them made a
	// domain, or starts the other one as its worker. The text names both versions.
	ErrVersion = errors.New("shm: program of another version")
	// ErrAddressSpace is returned when a process has too little address space for Options.Reserve.
	ErrAddressSpace = errors.New("shm: not enough address space")
	// ErrTooManyInTransit is returned by a put of a block that 4,095 unread messages carry already.
	ErrTooManyInTransit = errors.New("shm: too many messages carry this block")
	// ErrTooManyParticipants is returned to a process that joins a domain of 256 processes.
	ErrTooManyParticipants = errors.New("shm: domain has 256 participants")
	// ErrToken is returned to a process that joins with another token than the listener's.
	ErrToken = errors.New("shm: wrong token")
	// ErrUser is returned where a domain and the process that asks for it belong to different
	// users.
	ErrUser = errors.New("shm: domain of another user")
	// ErrNamespace is returned to a process that joins from another namespace (of processes or of
	// the network), where the processes could neither wake nor watch each other.
	ErrNamespace = errors.New("shm: domain in another namespace")
	// ErrTooLarge is returned for a block larger than the domain's address space.
	ErrTooLarge = errors.New("shm: larger than the domain")
	// ErrFull is returned by TryPut on a ring without an empty slot.
	ErrFull = errors.New("shm: ring is full")
	// ErrEmpty is returned by TryGet on a ring without a message.
	ErrEmpty = errors.New("shm: ring is empty")
	// ErrFinished is returned by a put after Finish, or when no receiver is left. A get returns it
	// when the ring is empty and a sender called Finish, or no sender is left. A *PeerError wraps
	// it if the last process at the other end died.
	ErrFinished = errors.New("shm: ring is finished")
	// ErrLocked is returned by TryLock and TryAcquire where Lock and Acquire would wait.
	ErrLocked = errors.New("shm: locked")
	// ErrNotOwner is returned by an Unlock of a lock that the caller does not hold.
	ErrNotOwner = errors.New("shm: not the holder of the lock")
	// ErrOwnerDied comes with a lock whose holder died: what it guards may be half done.
	ErrOwnerDied = errors.New("shm: it held the lock")
	// ErrNotRecoverable is returned for a lock whose holder died, and whose next holder unlocked it
	// without calling MarkConsistent.
	ErrNotRecoverable = errors.New("shm: it held the lock, and what that guards was not made consistent")
	// ErrBroken is returned by a barrier where a party died, gave up or called Abort.
	ErrBroken = errors.New("shm: barrier is broken")
	// ErrReleased is returned by a Release after which a bounded semaphore would have more permits
	// than at its start.
	ErrReleased = errors.New("shm: semaphore released too often")
	// ErrExist is returned by Bind for a name that is taken. It wraps fs.ErrExist.
	ErrExist = fmt.Errorf("shm: name is taken: %w", fs.ErrExist)
	// ErrNotExist is returned by Lookup and Unlink for a name that is not bound. It wraps
	// fs.ErrNotExist.
	ErrNotExist = fmt.Errorf("shm: no such name: %w", fs.ErrNotExist)
	// ErrKeeper is returned where a descriptor is sent or received after the keeper has ended: the
	// process that made the domain, which keeps the descriptors that are under way. It is also
	// returned for a message whose descriptor the keeper does not have.
	ErrKeeper = errors.New("shm: nobody keeps the descriptor")
	// ErrTooManyFiles is returned where a descriptor is sent while 4,096 are under way, or the
	// keeper has reached its limit of open files. Receive the files that were sent, close the
	// queues that nobody will read, or raise the keeper's limit (ulimit -n).
	ErrTooManyFiles = errors.New("shm: too many descriptors are under way")
	// ErrName is returned for a name that is empty, longer than 192 bytes or not UTF-8.
	ErrName = errors.New("shm: not a name")
	// ErrTooManyNames is returned by Bind in a domain that has 4,095 names.
	ErrTooManyNames = errors.New("shm: too many names")
)
