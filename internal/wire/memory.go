package wire

import "github.com/shoal-mp/shoal/internal/shm"

// Errors of package shm, which this package imports, are registered here. Package ipc registers
// those that it exports under other names.
func init() {
	RegisterType[*shm.PeerError]("shm.PeerError") // tells other processes of a death
	RegisterType[*shm.SpaceError]("shm.SpaceError")
	RegisterError("shm.ErrClosed", shm.ErrClosed)
	RegisterError("shm.ErrStale", shm.ErrStale)
	RegisterError("shm.ErrNoSpace", shm.ErrNoSpace)
	RegisterError("shm.ErrCorrupt", shm.ErrCorrupt)
	RegisterError("shm.ErrAddressSpace", shm.ErrAddressSpace)
	RegisterError("shm.ErrTooManyInTransit", shm.ErrTooManyInTransit)
	RegisterError("shm.ErrTooManyParticipants", shm.ErrTooManyParticipants)
	RegisterError("shm.ErrToken", shm.ErrToken)
	RegisterError("shm.ErrUser", shm.ErrUser)
	RegisterError("shm.ErrNamespace", shm.ErrNamespace)
	RegisterError("shm.ErrTooLarge", shm.ErrTooLarge)
	RegisterError("shm.ErrFull", shm.ErrFull)
	RegisterError("shm.ErrEmpty", shm.ErrEmpty)
	RegisterError("shm.ErrFinished", shm.ErrFinished)
	RegisterError("shm.ErrLocked", shm.ErrLocked)
	RegisterError("shm.ErrExist", shm.ErrExist)
	RegisterError("shm.ErrNotExist", shm.ErrNotExist)
	RegisterError("shm.ErrName", shm.ErrName)
	RegisterError("shm.ErrTooManyNames", shm.ErrTooManyNames)
	RegisterError("shm.ErrKeeper", shm.ErrKeeper)
	RegisterError("shm.ErrTooManyFiles", shm.ErrTooManyFiles)
}
