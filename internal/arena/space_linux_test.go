package arena_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

func init() { actors["narrow"] = actNarrow }

func TestDomain_TooLittleAddressSpaceIsAnError(t *testing.T) {
	d, err := arena.New(arena.Options{Budget: 1 << 60, Reserve: 1 << 60})
	if !errors.Is(err, arena.ErrAddressSpace) {
		if d != nil {
			d.Close()
		}
		t.Errorf("a domain of 2^60 bytes: %v", err)
	}
}

// actNarrow makes a domain in a process that may map so many more bytes, which is the first
// argument, with the budget that is the second, and uses a quarter of what it has got.
func actNarrow(_ *arena.Domain, args []string) error {
	var room, budget int64
	if _, err := fmt.Sscan(args[0]+" "+args[1], &room, &budget); err != nil {
		return err
	}
	const plenty = 1 << 40
	if err := setAddressSpace(plenty); err != nil {
		return err
	}
	if err := setAddressSpace(plenty - sys.AddressSpaceLeft() + room); err != nil {
		return err
	}
	d, err := arena.New(arena.Options{Budget: budget})
	if errors.Is(err, arena.ErrAddressSpace) {
		say("refused")
		return nil
	}
	if err != nil {
		return err
	}
	limit := d.Stats().Limit
	h, err := d.Alloc(int(limit / 4))
	if err != nil {
		return err
	}
	rest := make([]byte, room/8) // of the heap: a domain does not take all
	rest[len(rest)-1] = 1
	say("%d", limit)
	return errors.Join(d.Release(h), d.Close())
}

func setAddressSpace(n int64) error {
	return syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: uint64(n), Max: 1 << 40})
}

// narrow runs the actor and returns the budget that it got, 0 if it was refused, and what it was
// warned of.
func narrow(t *testing.T, room, budget int64) (limit int64, warned string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", fmt.Sprint(room), fmt.Sprint(budget))
	cmd.Env = append(os.Environ(), actorEnv+"=narrow", "GORACE=atexit_sleep_ms=0")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	if text := out.String(); text != "refused\n" {
		if _, err := fmt.Sscan(text, &limit); err != nil {
			t.Fatalf("%v: said %q", err, text)
		}
	}
	return limit, errs.String()
}

// Limits of address space stop no program that has said nothing of its memory: it gets less, down
// to a floor, and is told. A program that has said what it needs gets that or an error.
func TestDomain_DefaultBudgetFitsTheAddressSpace(t *testing.T) {
	if arena.Racing {
		t.Skip("the race detector needs more address space than there is")
	}
	m, err := sys.MemoryLimit()
	testutil.NoError(t, err)
	const gib = 1 << 30
	if m.Headroom() < gib/4 {
		t.Skip("too little memory for the default: ", m.Headroom())
	}
	for _, c := range []struct {
		room, budget, least, most int64
	}{
		{3 * gib, 0, gib / 4, 3 * gib / 2},
		{gib, 0, gib / 4, gib / 2},
		{gib / 2, 0, 0, 0},                  // the control segment takes half of it
		{gib, 64 << 20, 64 << 20, 64 << 20}, // all of what was asked for
		{gib, 2 * gib, 0, 0},
	} {
		got, warned := narrow(t, c.room, c.budget)
		if got < c.least || got > c.most {
			t.Errorf("room %d, budget %d: got %d, want %d to %d", c.room, c.budget, got, c.least, c.most)
		}
		said := strings.Count(warned, "ulimit -v")
		must := c.budget == 0 && got != 0 && 2*c.most < m.Headroom()
		if must && said != 1 || c.budget != 0 && said != 0 {
			t.Errorf("room %d, budget %d: warned %q", c.room, c.budget, warned)
		}
	}
}

// Where no memory is left, a program that says nothing of its memory is told so, and not that it
// asked for nothing.
func TestBudgetFor_AFullMachineIsNamed(t *testing.T) {
	const gib = 1 << 30
	roomy := sys.Memory{Total: 8 * gib, Available: 4 * gib, CgroupLimit: -1}
	full := sys.Memory{Total: 8 * gib, Available: gib / 4, CgroupLimit: -1}
	group := sys.Memory{Total: 8 * gib, Available: 4 * gib,
		CgroupLimit: gib, CgroupUsage: gib - 100, CgroupReclaimable: 50}
	for _, c := range []struct {
		asked int64
		m     sys.Memory
		want  int64
		says  []string
	}{
		{0, roomy, roomy.Headroom(), nil},
		{64 << 20, full, 64 << 20, nil}, // what was asked for is charged when it is used
		{0, full, 0, []string{"no space", "268435456 of 8589934592 bytes free", "shoal.SetMemory"}},
		{0, group, 0, []string{"no space", "its control group uses 1073741674 of 1073741824"}},
		{1000, roomy, 0, []string{"budget is 1000 bytes", fmt.Sprint(arena.SlabSize)}},
		{-1, roomy, 0, []string{"budget is -1 bytes"}},
	} {
		got, err := arena.BudgetFor(c.asked, c.m)
		noSpace := err != nil && c.asked == 0
		if got != c.want || (err == nil) != (c.says == nil) || errors.Is(err, arena.ErrNoSpace) != noSpace {
			t.Errorf("%d of %+v: %d, %v", c.asked, c.m, got, err)
		}
		for _, s := range c.says {
			if !strings.Contains(fmt.Sprint(err), s) {
				t.Errorf("%v: does not say %q", err, s)
			}
		}
	}
}
