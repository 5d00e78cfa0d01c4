package arena

import (
	"math"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/sys"
)

// AddProcessors adds the processors on which this process may run to the domain's set. A process
// must call it after it has changed its CPU affinity; joining the domain calls it as well.
//
// The set is a hint: it bounds the number of participants that spin. It never shrinks, because a
// processor that no participant uses any more costs a spin in vain, which [park.AdaptiveBackoff]
// stops.
func (d *Domain) AddProcessors() { d.addProcessors(affinity()) }

func (d *Domain) addProcessors(cpus []int) {
	var set [layout.ProcessorWords]uint64
	for _, c := range cpus {
		set[c/64%layout.ProcessorWords] |= 1 << (c % 64)
	}
	for i, v := range set {
		if v != 0 {
			d.mem.Header.Processors[i].Or(v)
		}
	}
}

// affinity returns the numbers of the processors on which this process may run.
func affinity() []int {
	cpus, err := sys.Affinity()
	if err != nil { // the system has no affinity
		for i := range runtime.NumCPU() {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

// processorQuota returns the number of processors that the quota of this process's control
// groups allows it to keep busy, rounded up. It returns [math.MaxUint64] if there is no quota.
func processorQuota() uint64 {
	if q := sys.CPUQuota(); q > 0 {
		return uint64(math.Ceil(q))
	}
	return math.MaxUint64
}
