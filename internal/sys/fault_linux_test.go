//go:build amd64 || arm64

package sys_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/sys"
)

func init() {
	roles["touch"] = touch
	roles["recover"] = recoverFromNil
}

const (
	page      = 4096
	farewell  = "the second page was closed\n"
	faultPage = "FAULT_TEST_PAGE"
)

// watchedPages returns four pages that nobody may access, with a text for the second, beside
// watched memory that is of no matter.
func watchedPages() ([]byte, error) {
	f, err := sys.Memfd("faults")
	if err != nil {
		return nil, err
	}
	var all [3][]byte
	for i := range all {
		if all[i], err = sys.Map(f, 4*page); err != nil {
			return nil, err
		}
		w, err := sys.WatchFaults(all[i])
		if err != nil {
			return nil, err
		}
		w.Explain(page, page, "nobody asked\n")
		if i == 1 {
			w.Explain(page, page, farewell)
		}
	}
	return all[1], sys.ProtectNone(all[1])
}

// touch reads the page that the environment names, or memory that is not watched.
func touch() error {
	mem, err := watchedPages()
	if err != nil {
		return err
	}
	n := 0
	fmt.Sscan(os.Getenv(faultPage), &n)
	if n == 4 {
		other, err := sys.Memfd("other")
		if err != nil {
			return err
		}
		if mem, err = sys.Map(other, page); err != nil {
			return err
		}
		if n, err = 0, sys.ProtectNone(mem); err != nil {
			return err
		}
	}
	fmt.Println("touch", mem[n*page+7])
	return nil
}

// recoverFromNil shows that Go's own handler still makes a panic of what it always made a panic of.
func recoverFromNil() (err error) {
	if _, err := watchedPages(); err != nil {
		return err
	}
	defer func() { fmt.Println(recover()) }()
	var p *[8]int
	fmt.Println(p[unsafe.Sizeof(p)-1])
	return nil
}

func TestAFaultIsExplained(t *testing.T) {
	for p, want := range map[string]string{
		"0": "unexpected fault address", "1": farewell + "unexpected fault address",
		"2": "unexpected fault address", "4": "unexpected fault address",
	} {
		cmd := command("touch")
		cmd.Env = append(cmd.Env, faultPage+"="+p)
		cmd.Stderr = nil
		_, err := cmd.Output()
		died, ok := err.(*exec.ExitError)
		if !ok || died.ExitCode() != 2 {
			t.Fatalf("page %s: %v, want exit status 2", p, err)
		}
		if errs := string(died.Stderr); !strings.HasPrefix(errs, want) || !strings.Contains(errs, "sys_test.touch(") {
			t.Errorf("page %s: standard error does not begin with %q, or has no stack:\n%s", p, want, errs)
		}
	}
}

func TestOtherFaultsStayGos(t *testing.T) {
	cmd := command("recover")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "nil pointer dereference") {
		t.Errorf("%q, %v", out, err)
	}
}
