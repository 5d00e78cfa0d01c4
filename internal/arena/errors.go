package arena

import "github.com/shoal-mp/shoal/shm"

// The types visible to users are declared in the public package shm, which this package imports.
type (
	Options    = shm.Options
	Stats      = shm.Stats
	Report     = shm.Report
	Holder     = shm.Holder
	Unread     = shm.Unread
	PeerError  = shm.PeerError
	SpaceError = shm.SpaceError
)

// The errors of this package are those declared by the public package shm.
var (
	ErrClosed              = shm.ErrClosed
	ErrStale               = shm.ErrStale
	ErrNoSpace             = shm.ErrNoSpace
	ErrCorrupt             = shm.ErrCorrupt
	ErrVersion             = shm.ErrVersion
	ErrAddressSpace        = shm.ErrAddressSpace
	ErrTooManyInTransit    = shm.ErrTooManyInTransit
	ErrTooManyParticipants = shm.ErrTooManyParticipants
	ErrToken               = shm.ErrToken
	ErrUser                = shm.ErrUser
	ErrNamespace           = shm.ErrNamespace
	ErrTooLarge            = shm.ErrTooLarge
	ErrFull                = shm.ErrFull
	ErrEmpty               = shm.ErrEmpty
	ErrFinished            = shm.ErrFinished
	ErrLocked              = shm.ErrLocked
	ErrNotOwner            = shm.ErrNotOwner
	ErrOwnerDied           = shm.ErrOwnerDied
	ErrNotRecoverable      = shm.ErrNotRecoverable
	ErrBroken              = shm.ErrBroken
	ErrReleased            = shm.ErrReleased
	ErrExist               = shm.ErrExist
	ErrNotExist            = shm.ErrNotExist
	ErrKeeper              = shm.ErrKeeper
	ErrTooManyFiles        = shm.ErrTooManyFiles
	ErrName                = shm.ErrName
	ErrTooManyNames        = shm.ErrTooManyNames
)
