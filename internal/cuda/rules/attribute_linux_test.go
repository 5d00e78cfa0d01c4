package rules_test

import (
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/test/testutil"
)

// named are attributes that decide what is possible, by the names of CUDA's header.
var named = []struct {
	name   string
	number cudriver.Attribute
}{
	{"COMPUTE_MODE", 20}, {"UNIFIED_ADDRESSING", 41}, {"COMPUTE_CAPABILITY_MAJOR", 75},
	{"COMPUTE_CAPABILITY_MINOR", 76},
	{"VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", 102}, {"HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED", 103},
	{"MEMORY_POOLS_SUPPORTED", 115},
	{"MEMPOOL_SUPPORTED_HANDLE_TYPES", 119}, {"IPC_EVENT_SUPPORTED", 125}, {"HANDLE_TYPE_FABRIC_SUPPORTED", 128},
}

var attributes = []rule{
	{step: "T1", asked: "what the devices say of themselves", ask: func(p *process) string {
		testutil.MustNoError(p.Init())
		all := []string{fmt.Sprintf("driver of CUDA %d, %d devices", testutil.Must(p.DriverVersion()),
			testutil.Must(p.DeviceCount()))}
		for i := range testutil.Must(p.DeviceCount()) {
			d := testutil.Must(p.DeviceGet(i))
			all = append(all, fmt.Sprintf("%s %x", testutil.Must(p.DeviceName(d)), testutil.Must(p.DeviceUUID(d))))
			for _, g := range []cudriver.Granularity{cudriver.GranularityMinimum, cudriver.GranularityRecommended} {
				n, err := p.MemGetAllocationGranularity(cudriver.Pinned(d, true), g)
				all = append(all, fmt.Sprintf("granularity %d: %d, %s", g, n, said(err)))
			}
			for _, a := range named {
				v, err := p.DeviceAttribute(a.number, d)
				all = append(all, fmt.Sprintf("%s: %d, %s", a.name, v, said(err)))
			}
		}
		return strings.Join(all, "\n    ")
	}},
	{step: "T1", asked: "the device's UUID in another process", want: "the same", ask: func(p *process) string {
		p.enter()
		theirs, _ := p.start("identify").hear()
		if ours := fmt.Sprintf("%x", testutil.Must(p.DeviceUUID(0))); theirs != ours {
			return fmt.Sprintf("%s, and %s here", theirs, ours)
		}
		return "the same"
	}},
}

func init() {
	helpers["identify"] = func(p *process) {
		testutil.MustNoError(p.Init())
		testutil.MustNoError(p.line.say(fmt.Sprintf("%x", testutil.Must(p.DeviceUUID(0)))))
	}
}
