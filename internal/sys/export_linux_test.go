package sys

import (
	"time"

	"golang.org/x/sys/unix"
)

// What the tests feed fixture trees to, or must reach on kernels that have something newer.
var (
	AddressBitsIn     = addressBits
	ContextSwitchesIn = contextSwitches
	CPUsIn            = cpus
	MachineCPUsIn     = machineCPUs
	MachineTimeIn     = machineTime
	ProcessLoadIn     = processLoad
	QuotaCPUsIn       = quotaCPUs
	MemoryLimitIn     = memoryLimit
	ConnOfFD          = newConn
	OOMKillsIn        = oomKills
	PeerByNumber      = peerByNumber
	PSSIn             = pss
	ResidentMemoryIn  = residentMemory
	StartTimeIn       = startTime
	StoppedIn         = stopped
)

// SetTakeoverTime has a lock of a directory be given up sooner, and returns how it was.
func SetTakeoverTime(d time.Duration) (before time.Duration) {
	before, takeoverTime = takeoverTime, d
	return before
}

// PendingBytes returns the size of the next ring that nobody has taken, 0 if there is none.
func PendingBytes(b *Bell) (n int, err error) {
	err = control(b.sock, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.SIOCINQ)
		return err
	})
	return n, err
}
