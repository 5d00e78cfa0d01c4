package leak

import (
	"maps"
	"slices"
	"testing"
)

// What a test on an H100 had at its end, with a file of its own that it forgot.
func TestDescribe_LeavesOutWhatNVIDIAsDriverKeeps(t *testing.T) {
	open := map[string]string{"3": "/tmp/forgotten", "8": "anon_inode:[eventfd]", "9": "pipe:[12400]",
		"10": "pipe:[12400]", "20": "socket:[12410]", "21": "/memfd:shoal (deleted)", "22": "anon_inode:[pidfd]"}
	want := func(what string, numbers ...string) {
		t.Helper()
		var got []string
		for n := range open {
			if filterDescriptors(open)[n+" "+open[n]] != "" {
				got = append(got, n)
			}
		}
		slices.Sort(got)
		if slices.Sort(numbers); !slices.Equal(got, numbers) {
			t.Errorf("%s: %v are described, want %v", what, got, numbers)
		}
	}
	want("without the driver", slices.Collect(maps.Keys(open))...)
	for n, to := range map[string]string{"13": "/dev/nvidiactl", "14": "/dev/nvidia-uvm", "16": "/dev/nvidia0"} {
		open[n] = to
	}
	want("with it", "21", "22", "3")
}
