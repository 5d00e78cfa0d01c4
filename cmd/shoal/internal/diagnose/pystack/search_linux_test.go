package pystack_test

import (
	"regexp"
	"testing"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

func TestSearch_FindsObjectsOfTheInterpreter(t *testing.T) {
	for _, python := range interpreters(t) {
		t.Run(python, func(t *testing.T) {
			supported(t, python)
			p := run(t, python, `import time
number = int("7" * 9)
text = "-".join(["left", "1234", "right"])
print("started", flush=True)
time.sleep(1000)
`)
			found, err := pystack.FindText(procfs.Machine, p, regexp.MustCompile(`left-(\d+)-right`), 64<<20)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 || found[0][1] != "1234" {
				t.Errorf("found %q, want the text", found)
			}
			for value, want := range map[int]bool{777777777: true, 777777778: false} {
				if has, err := pystack.HasInt(procfs.Machine, p, value, 64<<20); err != nil || has != want {
					t.Errorf("HasInt of %d is %v, %v; want %v", value, has, err, want)
				}
			}
			if has, err := pystack.HasInt(procfs.Machine, p, 777777777, 0); err != nil || has {
				t.Errorf("a search without memory is %v, %v", has, err)
			}
		})
	}
}
