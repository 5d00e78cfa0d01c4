package shm_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/sys"
)

func TestLayoutIsWhatTheSpecificationDraws(t *testing.T) {
	for _, o := range shm.Offsets {
		if o.Got != o.Want {
			t.Errorf("%s is %d, want %d", o.Name, o.Got, o.Want)
		}
	}
}

// A change of this number is a change of the protocol: processes of both versions cannot share a
// domain.
func TestLayoutHashIsPinned(t *testing.T) {
	const want = 0xc2f86e0c95806d66
	if got := shm.LayoutHash(); got != want {
		t.Errorf("layout hash is %#x, want %#x", got, uint64(want))
	}
}

func TestAttachToAnotherVersion(t *testing.T) {
	for name, change := range map[string]func(*shm.Domain){
		"layout": func(d *shm.Domain) { d.SetLayout(d.Magic(), shm.LayoutHash()+1) },
		"magic":  func(d *shm.Domain) { d.SetLayout(d.Magic()+1, shm.LayoutHash()) },
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, 1<<20, func(t *testing.T, f *family) {
				change(f.first)
				if _, err := f.attach(); !errors.Is(err, shm.ErrVersion) {
					t.Fatalf("attach: %v, want ErrVersion", err)
				}
			})
		})
	}
}

func TestAttachToFilesThatAreNoDomain(t *testing.T) {
	d := newDomain(t, 1<<20)
	for name, size := range map[string]int64{"empty": 0, "short": shm.ControlSize - 1, "zeros": shm.ControlSize} {
		t.Run(name, func(t *testing.T) {
			control, err := os.Create(filepath.Join(t.TempDir(), "control"))
			check(t, err)
			defer control.Close()
			check(t, control.Truncate(size))
			data, err := sys.Reopen(d.Files()[1])
			check(t, err)
			defer data.Close()
			if _, err := shm.Attach(control, data); !errors.Is(err, shm.ErrVersion) {
				t.Fatalf("attach: %v, want ErrVersion", err)
			}
		})
	}
}

func TestAttachWithTheDataOfAnotherDomain(t *testing.T) {
	a, b := newDomain(t, 1<<20), newDomain(t, 4<<20)
	control, mine, err := a.Dup(sys.Reopen)
	check(t, err)
	defer control.Close()
	defer mine.Close()
	other, err := sys.Reopen(b.Files()[1])
	check(t, err)
	defer other.Close()
	if _, err := shm.Attach(control, other); !errors.Is(err, shm.ErrCorrupt) {
		t.Fatalf("attach: %v, want ErrCorrupt", err)
	}
}
