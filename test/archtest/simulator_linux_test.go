package archtest_test

import (
	"slices"
	"strings"
	"testing"
)

// The simulator of devices and its interpreter are in no program that does not ask for them: only
// shoal-accel imports it, which demonstrates, the storms of test/torture, and package cuda
// where a build has the tag.
func TestSimulator_IsLinkedByTagsAndDemonstrations(t *testing.T) {
	for _, c := range []struct {
		tags string
		want []string
	}{
		{"", []string{"cmd/shoal-accel", "test/torture"}},
		{"cudasim", []string{"cmd/shoal-accel", "cuda", "test/torture"}},
	} {
		var who []string
		list := goTool(t, "list", "-tags", c.tags, "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "work")
		for line := range strings.Lines(list) {
			p := strings.Fields(line)
			if slices.Contains(p[1:], module+"/internal/cuda/sim") {
				who = append(who, strings.TrimPrefix(p[0], module+"/"))
			}
		}
		if !slices.Equal(who, c.want) {
			t.Errorf("with the tags %q %v import the simulator, want %v", c.tags, who, c.want)
		}
	}
}
