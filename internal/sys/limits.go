package sys

// Memory describes the memory of the machine and of this process's control groups, in bytes.
type Memory struct {
	Total     int64 // memory of the machine
	Available int64 // memory of the machine that is free without swapping
	Swap      int64 // swap space of the machine

	// The control group with the least room, of all versions and visible ancestors. The limit is -1
	// if there is none.
	CgroupLimit       int64
	CgroupUsage       int64
	CgroupReclaimable int64 // part of the usage: file cache, which the kernel drops before it kills

	// Shared is true if other processes use the same room as well: the room is the machine's, or
	// belongs to a control group that also contains processes other than this one and its
	// descendants.
	Shared bool
}

// Headroom returns the number of bytes that this process may commit before the kernel would have to
// kill. It is the smaller of the remaining memory of the machine and of the control group, each
// less a reserve. The reserve is 10 % or 256 MiB, whichever is more, but at most a quarter of the
// whole, so that a small container can work at all. Headroom is never negative.
func (m Memory) Headroom() int64 {
	room := m.Available - memoryReserve(m.Total)
	if m.CgroupLimit >= 0 {
		room = min(room, m.cgroupRoom()-memoryReserve(m.CgroupLimit))
	}
	return max(room, 0)
}

// Most returns the size above which an allocation cannot succeed: all memory of the machine, or of
// the control group if that has less, plus the swap space.
func (m Memory) Most() int64 {
	most := m.Total
	if m.CgroupLimit >= 0 {
		most = min(most, m.CgroupLimit)
	}
	return most + m.Swap
}

func (m Memory) cgroupRoom() int64 { return m.CgroupLimit - m.CgroupUsage + m.CgroupReclaimable }

func memoryReserve(whole int64) int64 {
	return max(whole/10, min(256<<20, whole/4))
}
