package codec

import "github.com/shoal-mp/shoal/internal/arena"

// Errors of package shm, which this package imports, are registered here. Package ipc registers
// those that it exports under other names.
func init() {
	RegisterType[*arena.PeerError]("shm.PeerError") // tells other processes of a death
	RegisterType[*arena.SpaceError]("shm.SpaceError")
	RegisterError("shm.ErrClosed", arena.ErrClosed)
	RegisterError("shm.ErrStale", arena.ErrStale)
	RegisterError("shm.ErrNoSpace", arena.ErrNoSpace)
	RegisterError("shm.ErrCorrupt", arena.ErrCorrupt)
	RegisterError("shm.ErrAddressSpace", arena.ErrAddressSpace)
	RegisterError("shm.ErrTooManyInTransit", arena.ErrTooManyInTransit)
	RegisterError("shm.ErrTooManyParticipants", arena.ErrTooManyParticipants)
	RegisterError("shm.ErrToken", arena.ErrToken)
	RegisterError("shm.ErrUser", arena.ErrUser)
	RegisterError("shm.ErrNamespace", arena.ErrNamespace)
	RegisterError("shm.ErrTooLarge", arena.ErrTooLarge)
	RegisterError("shm.ErrFull", arena.ErrFull)
	RegisterError("shm.ErrEmpty", arena.ErrEmpty)
	RegisterError("shm.ErrFinished", arena.ErrFinished)
	RegisterError("shm.ErrLocked", arena.ErrLocked)
	RegisterError("shm.ErrExist", arena.ErrExist)
	RegisterError("shm.ErrNotExist", arena.ErrNotExist)
	RegisterError("shm.ErrName", arena.ErrName)
	RegisterError("shm.ErrTooManyNames", arena.ErrTooManyNames)
	RegisterError("shm.ErrKeeper", arena.ErrKeeper)
	RegisterError("shm.ErrTooManyFiles", arena.ErrTooManyFiles)
}
