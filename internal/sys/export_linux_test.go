package sys

import (
	"time"

	"golang.org/x/sys/unix"
)

// What the tests feed fixture trees to, or must reach on kernels that have something newer.
var (
	AddressBitsIn     = addressBits
	ContextSwitchesIn = contextSwitches
	CPUsIn            = countCPUs
	MachineCPUsIn     = machineCPUs
	MachineTimeIn     = machineTime
	ProcessLoadIn     = processLoad
	QuotaCPUsIn       = quotaCPUs
	MemoryLimitIn     = memoryLimit
	ConnOfFD          = newConn
	OOMKillsIn        = oomKills
	PeerByNumber      = peerByNumber
	PSSIn             = readPSS
	ResidentMemoryIn  = residentMemory
	StartTimeIn       = startTime
	StoppedIn         = isStopped
)

// SetTakeoverTime has a lock of a directory be given up sooner, and returns how it was.
func SetTakeoverTime(d time.Duration) (before time.Duration) {
	before, takeoverTime = takeoverTime, d
	return before
}

// PendingBytes returns the size of the next ring that nobody has taken, 0 if there is none.
func PendingBytes(b *Bell) (n int, err error) {
	err = withDescriptor(b.sock, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.SIOCINQ)
		return err
	})
	return n, err
}
